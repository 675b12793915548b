"""Topics that a flow must not write because of another flow of the configuration: loops, and two writers of one topic.

A renaming policy breaks cycles by the names of topics; IdentityReplicationPolicy can't, and two flows with it in
opposite directions would copy the same records for ever (strimzi#9905). Here the arrows themselves are followed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from airmirror.config import Flow
from airmirror.topics.names import policy_of, select

# By which records of all topics of a flow are followed; some separators make new names without end.
MOST_NAMES = 100_000


def loop(flow: Flow, topic: str, remote: str, others: Collection[Flow], most: int = MOST_NAMES) -> tuple[str, ...]:
    """The names of the flows by which records of ``topic`` would come back and be taken again, this one first.

    Empty: they do not, as far as ``most`` names tell. They need not come back under the same name.
    """
    first = (flow.target.alias, remote)
    paths: list[tuple[tuple[str, str], tuple[str, ...]]] = [(first, (flow.name,))]
    seen = {first}
    while paths and len(seen) <= most:
        (cluster, name), path = paths.pop(0)
        for other in others:
            if other.source.alias != cluster or name not in (chosen := select(other, [name])):
                continue
            reached = (other.target.alias, chosen[name])
            if reached[0] == flow.source.alias and (reached[1] == topic or select(flow, [reached[1]])):
                return (*path, other.name)
            if reached not in seen and len(chosen[name]) <= 249:  # names that only grow end here
                seen.add(reached)
                paths.append((reached, (*path, other.name)))
    return ()


def other_writers(
    flow: Flow, topics: Mapping[str, str], others: Collection[Flow]
) -> dict[str, tuple[tuple[Flow, str], ...]]:
    """Remote topics that other flows would write too, with those flows and the topics that they would take them from.

    Whether their sources have those topics is for the caller to ask.
    """
    found: dict[str, list[tuple[Flow, str]]] = {}
    for other in others:
        if other.target.alias != flow.target.alias or other.name == flow.name:
            continue
        policy = policy_of(other)
        prefix = f"{other.source.alias}{other.replication_policy_separator}"
        for topic, remote in topics.items():
            # Which topic would become ``remote`` is a policy's secret: what it says, what its family does, and the name here.
            candidates = {topic, remote, remote.removeprefix(prefix), policy.upstream_topic(remote) or remote}
            for theirs, written in select(other, candidates).items():
                if written == remote:
                    found.setdefault(remote, []).append((other, theirs))
    return {remote: tuple(writers) for remote, writers in found.items()}


def refusals(
    flow: Flow, topics: Mapping[str, str], others: Collection[Flow], there: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """Return why topics must not be replicated, by topic, with the way out.

    ``there``: for each other source alias of interest, the topics that it has. Of topics that return the
    reverse flow brings nothing back: it is frozen.
    """
    reasons: dict[str, str] = {}
    writers = {} if flow.is_aggregate else other_writers(flow, topics, others)
    most = 10 + MOST_NAMES // (1 + len(topics) * len(others))
    for topic, remote in topics.items():
        open_too = [each for each in others if topic not in flow.returns or each.name != flow.reverse_name]
        if path := loop(flow, topic, remote, open_too, most):
            reasons[topic] = (
                f"its records would come back to it by {', '.join(path)}, for ever; "
                "exclude it from one of these flows, or use DefaultReplicationPolicy"
            )
            continue
        for other, theirs in writers.get(remote, ()):
            if theirs in there.get(other.source.alias, ()):
                reasons[topic] = (
                    f"flow {other.name!r} writes the same remote topic from {theirs!r} of cluster "
                    f"{other.source.alias!r}; exclude it from one of the two, use a policy that tells them apart, or "
                    f"declare both flows: {flow.name}.aggregate = true, {other.name}.aggregate = true (order is then "
                    "kept per source only)"
                )
    return reasons


def duplicates(flow: Flow, topics: Mapping[str, str], others: Collection[Flow]) -> Iterator[str]:
    """Yield remote topics that hold the same records as others on the target, because they also come by another way.

    A consumer that subscribes to all of them by a pattern reads those records twice.
    """
    policy = policy_of(flow)
    for topic, remote in topics.items():
        origin, upstream = policy.topic_source(topic), policy.upstream_topic(topic)
        while origin is not None and upstream is not None and origin != flow.source.alias:
            for other in others:
                if (other.source.alias, other.target.alias) == (origin, flow.target.alias):
                    yield from (
                        f"{remote!r} will hold the same records as {same!r}, which flow {other.name!r} writes: whoever "
                        "subscribes to both reads them twice; exclude the topic from one of the two flows"
                        for same in select(other, [upstream]).values()
                    )
            before, origin, upstream = upstream, policy.topic_source(upstream), policy.upstream_topic(upstream)
            if upstream == before:  # a policy that keeps names
                break

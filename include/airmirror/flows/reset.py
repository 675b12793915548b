"""``airmirror reset`` and ``decide.…``: a person decides about topics that can't continue; shown first, done on order only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.creation import delete_topics
from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, catch_up_ledger, plan_topics, prepare
from airmirror.offsets.checkpoints import rewind_checkpoints
from airmirror.offsets.syncs import rewind_offset_syncs
from airmirror.partitions import TopicPartition
from airmirror.slot.errors import end_return
from airmirror.tell import Tell, silent
from airmirror.topics.identity import identity, look_around
from airmirror.topics.names import select
from airmirror.topics.sync import apply
from airmirror.windows import driver
from airmirror.windows.connect_offsets import with_connect_offsets
from airmirror.windows.errors import frozen_topic
from airmirror.windows.fence import GrantedLease, check_not_shut, fence, leased, new_window
from airmirror.windows.losses import losses
from airmirror.windows.mirror import Mirror, returns_of
from airmirror.windows.resets import Choice, Facts, Reset, ResetNotPossible, decide
from airmirror.windows.resetting import commit, look
from airmirror.wire.mappings import FlowIdentity
from airmirror.wire.owners import Owners


class NotOfTheFlow(AirmirrorError, bad_input=True):
    """A topic that the flow neither replicates nor has replicated."""

    flow: str
    topic: str
    says = "flow {0.flow!r} neither replicates topic {0.topic!r} nor has done so; see {airmirror:topics}"


def check_of_the_flow(mirror: Mirror, topics: Iterable[str]) -> None:
    """Raises NotOfTheFlow for a topic that the flow does not replicate, or that the source does not have."""
    for topic in sorted(topics):
        if topic not in select(mirror.flow, [topic]) or mirror.source.refresh_existing([topic]):
            raise NotOfTheFlow(mirror.flow.name, topic)


@dataclass(frozen=True)
class ResetOrder:
    """An order to reset partitions, and who gave it. ``partitions``: empty for all, as it must be for a new topic.

    ``recreate``: the remote topics are deleted and made again. ``name``: what was done in this name is not done again.
    """

    topics: tuple[str, ...]
    partitions: tuple[int, ...]
    choice: Choice
    recreate: bool = False
    by: str = ""
    reason: str = ""
    name: str = ""

    def takes(self, partition: int) -> bool:
        return not self.partitions or partition in self.partitions


def consider(opened: Opened, order: ResetOrder) -> list[Reset]:
    """Return what the order would do. Writes only the ledger. Raises FlowFrozen, ResetNotPossible, NotOfTheFlow."""
    catch_up_ledger(opened)
    _check_possible(opened, opened.ledger.owners(), order)
    topics = _remote_topics(opened, order)
    with Mirror.open(opened.flow, opened.ledger, "reset") as mirror:
        mirror.refresh()
        resets = _decide(mirror, topics, order)
        return resets + _losses(mirror, topics, order, but={reset.facts.key for reset in resets})


def undecided(opened: Opened, topics: Collection[str] = ()) -> list[Facts]:
    """The partitions that can't continue by themselves, of ``topics`` or of all that were replicated. Raises NotOfTheFlow."""
    catch_up_ledger(opened)
    order = ResetOrder(
        tuple(topics) or tuple(sorted({topic for topic, _ in opened.ledger.state().known})), (), Choice.ACCEPT_LOSS
    )
    names = _remote_topics(opened, order)
    with Mirror.open(opened.flow, opened.ledger, "reset") as mirror:
        mirror.refresh()
        return [facts for facts in _looked_at(mirror, names, order.choice) if facts.problem]


def carry_out(opened: Opened, order: ResetOrder, tell: Tell = silent) -> list[Reset]:
    """Do it, under the flow's lease: no window is at work meanwhile. Raises FlowBusy, and what ``consider`` raises."""
    opened = prepare(opened).opened
    with _lease(opened, tell, order.name or "reset") as (mirror, granted):
        _check_possible(opened, granted.owners, order)
        if _finish(opened, order, granted.check, tell) and order.choice is not Choice.ACCEPT_LOSS:
            return []  # accepted again, a loss is the same; but what now can continue may still hold records that differ
        topics = _remote_topics(opened, order)
        if order.choice is Choice.NEW_TOPIC:
            tell(f"creating {', '.join(sorted(topics.values()))} on {opened.flow.target.alias}")
            opened = _with_new_topics(opened, topics, tell)
        if order.recreate:
            tell(f"deleting {', '.join(sorted(topics.values()))} on {opened.flow.target.alias}, to create them again")
            delete_topics(connect(opened.flow.target), list(topics.values()))
            apply(opened.flow, plan_topics(opened), tell)

        def done(resets: list[Reset]) -> list[Reset]:
            if resets:
                tell(f"committing {len(resets)} decisions")
                commit(granted, resets, by=order.by, reason=order.reason)
                mirror.catch_up()
            return resets

        resets = done(_decide(mirror, topics, order))
        moving = [each for each in resets if each.start >= 0]
        starts = {each.facts.key: (each.start, each.facts.target_end) for each in moving}
        _rewind(opened, topics, starts, {each.facts.key: each.sync for each in moving}, held=granted.check, tell=tell)
        # What now can continue may still hold records that differ.
        resets += done(_losses(mirror, topics, order))
    catch_up_ledger(opened)
    return resets


def _check_possible(opened: Opened, owners: Owners, order: ResetOrder) -> None:
    """Raise FlowFrozen, or ResetNotPossible, where no window would copy what the order resets, or where the remote topic has more
    than the flow's copies: that of a topic that returns is the original one, and into that of an aggregate others copy."""
    check_not_shut(opened.flow, owners)
    for topic in order.topics:
        if freeze := owners.why_frozen(topic):
            reason = frozen_topic(opened.flow.name, topic, freeze.by, freeze.time_ms, freeze.reason)
            raise ResetNotPossible(topic, order.choice, reason)
    if order.recreate and opened.flow.is_aggregate:
        reason = (
            "other flows write to its remote topic, which would be deleted; without --recreate-remote-topic it is kept"
        )
        raise ResetNotPossible(", ".join(order.topics), order.choice, reason)
    names = returns_of(opened.flow, opened.ledger)
    for topic in () if order.choice is Choice.ACCEPT_LOSS else order.topics:
        if topic in names:
            way_out = f"--accept-loss continues its return; {end_return(opened.flow, names[topic])} ends its return"
            raise ResetNotPossible(topic, order.choice, f"it returns to {names[topic]}, the original topic; {way_out}")


def replaced_identity(opened: Opened) -> FlowIdentity | None:
    """The identity that keeps out the flow's own; None: there is none."""
    around = look_around(opened.flow, opened.ledger)
    if around.own is None:
        return None
    theirs, ours = around.own.identity, identity(opened.flow, around)
    names = (theirs.name, theirs.source_cluster_id, theirs.target_cluster_id)
    return None if names == (ours.name, ours.source_cluster_id, ours.target_cluster_id) else theirs


def replace_identity(opened: Opened, by: str, reason: str, tell: Tell = silent) -> FlowIdentity | None:
    """Let the flow continue with internal topics that another alias or cluster has written; which it was.

    What windows under the other names may have left open is fenced. Raises FlowBusy.
    """
    flow = opened.flow
    theirs = replaced_identity(opened)
    if theirs is None:
        return None
    around = look_around(flow, opened.ledger)
    before = replace(
        flow, source=replace(flow.source, alias=theirs.source), target=replace(flow.target, alias=theirs.target)
    )
    with _lease(opened, tell) as (mirror, granted):
        fence(before, mirror.target, granted.lease.slots)
        ours = identity(flow, around)
        problem = f"written by {theirs.name} ({theirs.source_cluster_id} -> {theirs.target_cluster_id})"
        decided = driver.decision(granted, ("", -1), "identity", problem, by=by, reason=reason)
        granted.appender.append([decided, (ours.encode_key(), ours.encode_value())])
    return theirs


def _decide(mirror: Mirror, topics: Mapping[str, str], order: ResetOrder) -> list[Reset]:
    looked = _looked_at(mirror, topics, order.choice)
    absent = sorted(set(order.partitions) - {facts.partition for facts in looked})
    if absent and not order.name:  # typed, and not of a question that was asked when they were there
        reason = f"there is no partition {', '.join(map(str, absent))}"
        raise ResetNotPossible(", ".join(order.topics), order.choice, reason)
    decided = (decide(facts, order.choice) for facts in looked if order.takes(facts.partition))
    return [reset for reset in decided if reset is not None]


def _looked_at(mirror: Mirror, topics: Mapping[str, str], choice: Choice) -> list[Facts]:
    """The facts, with the progress that Connect keeps of what is not known here: windows begin there, and so does a reset."""
    state = mirror.index.state()
    if choice is not Choice.FORGET:  # the source does not have these topics
        state = with_connect_offsets(mirror, state, topics)
    return look(mirror, topics, choice, state)


def reset_in_name(opened: Opened, name: str) -> set[TopicPartition]:
    """The partitions that an order of this name has reset; none without a name."""
    resets = opened.ledger.resets() if name else []
    return {reset.key for reset in resets if reset.window.rpartition("-")[0] == name}


_MOVES = {Choice.START_AGAIN, Choice.NEW_TOPIC, Choice.ACCEPT_LOSS}


def _finish(opened: Opened, order: ResetOrder, held: Callable[[], None], tell: Tell) -> bool:
    """Return whether a reset of the order's name was committed; does what was left to do of it."""
    resets = [each for each in opened.ledger.resets() if each.topic in order.topics and each.choice in _MOVES]
    done = {each.key: each.window for each in resets}  # whoever gave the order: what it left is finished by any
    last = {key: record for key, record in opened.ledger.last_mappings().items() if key in done}
    starts = {
        TopicPartition(*key): (record.source_start, record.target_start)
        for key, record in last.items()
        if record.window == done[TopicPartition(*key)]  # nothing was copied since
    }
    # Before the first record to come, as Reset.sync: what is past that sync is translated to the offset after it.
    syncs = {key: (start, end - (last[key].lost > 0)) for key, (start, end) in starts.items()}
    _rewind(opened, {key.topic: last[key].remote_topic for key in starts}, starts, syncs, held=held, tell=tell)
    return any(key.topic in order.topics for key in reset_in_name(opened, order.name))


Places = Mapping[TopicPartition, tuple[int, int]]  # by partition of the source an offset of it, and one of the target


def _rewind(
    opened: Opened, topics: Mapping[str, str], starts: Places, syncs: Places, held: Callable[[], None], tell: Tell
) -> None:
    """Checkpoints and offset ``syncs`` follow partitions that resume elsewhere, at a source and a target offset."""
    if starts:
        rewind_offset_syncs(opened.flow, opened.ledger, syncs, held, tell)
        remote = {TopicPartition(topics[key.topic], key.partition): start for key, start in starts.items()}
        rewind_checkpoints(opened.flow, opened.ledger, remote, held, tell)


def _losses(
    mirror: Mirror, topics: Mapping[str, str], order: ResetOrder, but: Collection[TopicPartition] = ()
) -> list[Reset]:
    """Return the losses to declare among records that no gate has passed yet: those that are not equal on both sides.

    ``but``: partitions that are to be decided first.
    """
    if order.choice is not Choice.ACCEPT_LOSS:
        return []
    chosen = [
        record
        for record in mirror.index.unverified()
        if record.topic in topics and record.key not in but and order.takes(record.partition)
    ]
    return losses(mirror, chosen, topics)


def _remote_topics(opened: Opened, order: ResetOrder) -> dict[str, str]:
    """The remote topic of each topic: where it was replicated to, or where it would be; or new ones, if that is the choice."""
    flow = opened.flow
    known = {topic: record.remote_topic for (topic, _), record in opened.ledger.last_mappings().items()}
    known |= select(flow, order.topics)
    for topic in order.topics:
        if topic not in known:
            raise NotOfTheFlow(flow.name, topic)
    if order.choice is not Choice.NEW_TOPIC:
        return {topic: known[topic] for topic in order.topics}
    by_policy = replace(flow, remote_topics={})
    taken = {*connect(flow.target).topic_names(), *select(by_policy, connect(flow.source).topic_names()).values()}
    folded = {name.replace(".", "_") for name in taken}  # as Kafka tells names apart
    new = {}
    for topic, remote in select(by_policy, order.topics).items():
        names = (f"{remote}{flow.replication_policy_separator}{number}" for number in count(2))
        new[topic] = next(name for name in names if name.replace(".", "_") not in folded)
    return new


def _with_new_topics(opened: Opened, topics: Mapping[str, str], tell: Tell) -> Opened:
    """The flow with other remote topics, which are created. Raises ResetNotPossible."""
    flow = opened.flow
    opened = replace(opened, flow=replace(flow, remote_topics={**flow.remote_topics, **topics}))
    report = apply(opened.flow, plan_topics(opened), tell)
    for topic, remote in topics.items():
        if report.topics.get(topic) != remote:
            reason = next((each for each in report.refused if repr(remote) in each), f"{remote!r} can't be created")
            raise ResetNotPossible(topic, Choice.NEW_TOPIC, reason)
    return opened


@contextmanager
def _lease(opened: Opened, tell: Tell, name: str = "reset") -> Iterator[tuple[Mirror, GrantedLease]]:
    """The flow's lease, its slots fenced and its index brought up to date."""
    with Mirror.open(opened.flow, opened.ledger, "reset") as mirror:
        mirror.source.refresh([])
        with leased(mirror, new_window(name), slots=1) as granted:
            tell("fencing what earlier windows may have left")
            fence(mirror.flow, mirror.target, granted.lease.slots)
            mirror.catch_up()
            yield mirror, granted

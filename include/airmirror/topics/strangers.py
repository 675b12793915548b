"""The flows of other configurations, as they tell of themselves in a log: a stranger's words, checked before they count.

Whoever may write to a mapping topic may say anything there. None of it chooses code (policies are MirrorMaker 2's own
only), or a pattern that takes long to match, and what makes no sense is a warning: never the error of the flow that read it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from airmirror.config import Cluster, Flow
from airmirror.naming import TopicFilter, UnknownReplicationPolicy, built_in_policy, is_quick
from airmirror.naming.patterns import InvalidPattern
from airmirror.wire.mappings import FlowIdentity

MOST_FLOWS = 100
MOST_CLUSTERS = 1_000  # upstream of one flow
LONGEST_RULES = 10_000  # characters of all topics and topics.exclude of one flow
SHOWN = 100
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")  # as in topics' names, of which aliases and separators become parts
_CLUSTER_ID = re.compile(r"[!-~]{0,249}")


def nonsense(said: FlowIdentity) -> str:
    """Return why an identity can't be one of Airmirror's; empty if it can."""
    if len(said.upstream) > MOST_CLUSTERS:
        return f"it names {len(said.upstream)} clusters upstream"
    pairs = ((said.source, said.source_cluster_id), (said.target, said.target_cluster_id), *said.upstream)
    for alias, cluster_id in pairs:
        if not _NAME.fullmatch(alias):
            return f"{shown(alias)} is no alias of a cluster"
        if not _CLUSTER_ID.fullmatch(cluster_id):
            return f"{shown(cluster_id)} is no id of a cluster"
    return ""


def flows_of(
    flow: Flow, identities: Iterable[FlowIdentity], aliases: dict[str, str]
) -> tuple[tuple[Flow, ...], tuple[str, ...]]:
    """Flows as identities describe them, with the names in ``aliases`` (by cluster id), and warnings of those left out.

    They have no addresses; what an identity does not tell is as in ``flow``.
    """
    flows: list[Flow] = []
    warnings = []
    for said in identities:
        try:
            if len(flows) == MOST_FLOWS:
                raise _NotUnderstood(f"only {MOST_FLOWS} flows of other configurations are looked at")
            flows.append(_flow(flow, said, aliases))
        except _NotUnderstood as reason:
            warnings.append(
                f"flow {said.name!r} of another configuration is left out: {reason}; whether it brings records back or "
                "writes the same remote topics is not known"
            )
    return tuple(flows), tuple(warnings)


def shown(text: str) -> str:
    """A stranger's text in a message: its beginning, in quotes, without characters that do something to a terminal."""
    return ascii(text[:SHOWN]) + ("…" if len(text) > SHOWN else "")


class _NotUnderstood(Exception):
    """The reason."""


def _flow(flow: Flow, said: FlowIdentity, aliases: dict[str, str]) -> Flow:
    if not _NAME.fullmatch(said.separator):
        raise _NotUnderstood(f"{shown(said.separator)} is no replication.policy.separator")
    try:
        policy = built_in_policy(said.policy)
    except UnknownReplicationPolicy as error:
        reason = f"its replication.policy.class {shown(said.policy)} is none of MirrorMaker 2's"
        raise _NotUnderstood(reason) from error
    _check_rules((*said.topics, *said.topics_exclude))
    return replace(
        flow,
        source=Cluster(aliases.get(said.source_cluster_id, said.source), (), {}),
        target=Cluster(aliases.get(said.target_cluster_id, said.target), (), {}),
        topics=said.topics,
        topics_exclude=said.topics_exclude,
        replication_policy_class=policy,
        replication_policy_separator=said.separator,
        remote_topics={},
    )


def _check_rules(patterns: Collection[str]) -> None:
    if sum(map(len, patterns)) > LONGEST_RULES:
        raise _NotUnderstood(f"its topics and topics.exclude have more than {LONGEST_RULES:,} characters")
    for pattern in patterns:
        if not is_quick(pattern):
            raise _NotUnderstood(f"of patterns only names with one `.*` or its like are followed, not {shown(pattern)}")
        try:
            TopicFilter((pattern,), ()).matches("")
        except InvalidPattern as error:
            raise _NotUnderstood(f"{shown(pattern)} is no pattern") from error

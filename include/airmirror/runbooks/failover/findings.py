"""The rules of a failover: each says *ok*, *warn* or *stop*, with what it has seen and the way out, also where all is well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airmirror.clusters.protocol.groups import SHARE
from airmirror.errors import command, counted, named
from airmirror.naming import is_internal_of
from airmirror.offsets.translation import Reason
from airmirror.report.document import Finding, Level
from airmirror.runbooks.failover.groups import GroupPoint, Kinds
from airmirror.runbooks.failover.partitions import PartitionPoint
from airmirror.runbooks.shown import judged
from airmirror.times import utc
from airmirror.topics.drift import Drift

NOT_FOLLOWED = {
    SHARE: "drain share groups on the source first; on the target `kafka-share-groups.sh --reset-offsets` says where one begins",
    "connect": "Connect's workers keep three topics of their own: start workers on the target, and give connectors their "
    "offsets by `airmirror translate --from FILE --to FILE`",
}  # by a group's kind, what to do instead


MAYBE_STREAMS = (
    "on Kafka 4.2.0 positions break a streams group that is not there yet (KAFKA-20254), and nothing tells which of them is a "
    "streams group (`group.protocol=streams`)"
)
JUDGED_ALONE = "the step judge of a failover proves what it can without the source"


def findings(
    flow: str,
    *,
    source_error: str,
    partitions: Sequence[PartitionPoint],
    stopped: Sequence[str],
    excluded: Sequence[str],
    frozen: Sequence[str],
    groups: Sequence[GroupPoint],
    kinds: Kinds,
    unknown: Sequence[str],
    drift: Sequence[Drift] | None,
    refused: Sequence[str],
    applications: Sequence[str],
    has_reverse: bool,
    is_frozen: bool,
    now_ms: int,
) -> list[Finding]:
    """Every rule, in the order in which a person would ask. ``unknown``: groups that may be streams groups, which their positions
    may break; ``is_frozen``: no window runs; who is failed over goes back."""
    window = command(*(("failback", "plan") if is_frozen else ("run-window",)), flow=flow)
    return [
        _source(source_error),
        _replicated(window, partitions, excluded, frozen),
        _left_on_source(window, partitions, source_error),
        *(Finding("stop", "logs are those that were copied", each, command("status", flow=flow)) for each in stopped),
        _verified(flow, partitions, source_error),
        _held(flow, partitions),
        _on_target(flow, partitions, source_error),
        *_groups(flow, groups, source_error, now_ms),
        kinds_finding(kinds, source_error, unknown),
        _names(groups),
        *_streams(applications, partitions),
        drift_finding(flow, drift, refused),
        reverse_finding(flow, has_reverse),
    ]


def _source(error: str) -> Finding:
    what = "the source answers"
    if not error:
        return Finding("ok", what, "it does: a planned failover can drain it, and lose nothing")
    way_out = "bring it back and ask again; else what is unknown below stays unknown"
    return Finding("warn", what, f"it does not, all about it is as it was last seen: {error}", way_out)


def _replicated(
    window: str, partitions: Sequence[PartitionPoint], excluded: Sequence[str], frozen: Sequence[str]
) -> Finding:
    what = "something was replicated"
    left_out = f"; left out, as the flow does not replicate it any more: {named(excluded)}" if excluded else ""
    left_out += f"; left out, as it is frozen by name: {named(frozen)}" if frozen else ""
    if any(point.committed_end and point.remote_topic for point in partitions):
        topics = {point.topic for point in partitions}
        return Finding(
            "ok", what, f"{counted(len(partitions), 'partition')} of {counted(len(topics), 'topic')}{left_out}"
        )
    if frozen and all(point.missing == 0 for point in partitions):  # a window would copy nothing
        return Finding("warn", what, f"nothing but what is left out: there is nothing to fail over to{left_out}")
    return Finding("stop", what, f"nothing yet: there is nothing to fail over to{left_out}", window)


def _left_on_source(window: str, partitions: Sequence[PartitionPoint], source_error: str) -> Finding:
    what = "everything is replicated"
    unknown = [str(point.key) for point in partitions if point.missing is None]
    behind = [point for point in partitions if point.missing]
    if unknown:
        said = f"the end on the source is not known: {named(unknown)}"
        return Finding("warn", what, said, "" if source_error else window)
    if not behind:
        said = "all that was last seen is verified" if source_error else "all that the source has is verified"
        return Finding("ok", what, said)
    total = sum(point.missing or 0 for point in behind)
    names = [f"{point.key} ({point.missing:,})" for point in behind]
    return Finding(
        "warn",
        what,
        f"{total:,} offsets of the source are not verified on the target: {named(names)}",
        "they can't be replicated while the source is gone" if source_error else window,
    )


def _verified(flow: str, partitions: Sequence[PartitionPoint], source_error: str) -> Finding:
    found = [f"{point.key} ({point.unverified:,})" for point in partitions if point.unverified]
    way_out = JUDGED_ALONE if source_error else command("verify", flow=flow)
    return judged("warn", "all that is on the target is verified", found, "it is", "committed, not verified", way_out)


def _held(flow: str, partitions: Sequence[PartitionPoint]) -> Finding:
    found = [str(point.key) for point in partitions if point.held]
    said, way_out = "held, and groups would stop before it", command("hold", "list", flow=flow)
    return judged("stop", "nothing is held", found, "nothing is", said, way_out)


def _on_target(flow: str, partitions: Sequence[PartitionPoint], source_error: str) -> Finding:
    what = "the target still has what was verified"
    lost = [f"{point.key} ({point.lost_on_target:,})" for point in partitions if point.lost_on_target > 0]
    unread = [str(point.key) for point in partitions if point.lost_on_target < 0]
    if lost:
        way_out = "bring the target's log back, or the source" if source_error else command("verify", flow=flow)
        return Finding("stop", what, f"its log is shorter than what was verified: {named(lost)}", way_out)
    way_out = "bring these partitions of the target back"
    return judged("stop", what, unread, "its logs reach at least as far", "without a leader, or gone", way_out)


def _groups(flow: str, groups: Sequence[GroupPoint], source_error: str, now_ms: int) -> Iterator[Finding]:
    what, shown = "consumer groups resume at the very next record", "" if source_error else command("groups", flow=flow)
    if not groups:
        said = "no position of any group was ever seen by this ledger" if source_error else "there are none"
        yield Finding("warn" if source_error else "ok", what, said)
        return
    count = counted(len({point.group for point in groups}), "group")
    elsewhere = sorted({f"{point.group}: {point.topic}" for point in groups if point.reason == Reason.NOT_REPLICATED})
    groups = [point for point in groups if point.reason != Reason.NOT_REPLICATED]
    lost = [f"{point.group} in {point.topic}-{point.partition}: {point.reason}" for point in groups if point.reason]
    rough = [f"{point.group} in {point.topic}-{point.partition}" for point in groups if point.exact is False]
    again = sum(point.again for point in groups)
    if lost:
        yield Finding("stop", what, f"they would be left: {named(lost)}", shown)
    elif rough:
        yield Finding("warn", what, f"estimated, some records are read twice: {named(rough)}", shown)
    elif again:
        yield Finding("warn", what, f"{count}; {again:,} offsets would be read again, or are not there", shown)
    else:
        yield Finding("ok", what, f"{count}, exact, nothing is read twice")
    if elsewhere:
        said = f"what they read besides is not replicated: {named(elsewhere)}"
        yield Finding("warn", "all that these groups read is replicated", said, shown)
    if source_error:
        oldest = min((point.seen_ms for point in groups), default=-1)
        ago = f"last seen {utc(oldest)}, {max(0, now_ms - oldest) / 1000:,.0f} s ago"
        ago = ago if oldest >= 0 else "of some only checkpoints tell, of a time that is not known"
        said = f"{ago}: what they read since is read again"
        yield Finding("warn", "their positions are those of now", said)
    active = sorted({point.group for point in groups if point.is_active})
    way_out = "stop these consumers; their offsets can't be written"
    yield judged("stop", "no group is active on the target yet", active, "none is", "they have members there", way_out)


def kinds_finding(kinds: Kinds, source_error: str = "", unknown: Sequence[str] = ()) -> Finding:
    """Every kind of group that there is: what is not followed is named, and what may be broken, as its kind is ``unknown``."""
    what = "groups of every kind are followed"
    said = ", ".join(f"{len(names)} {kind}" for kind, names in sorted(kinds.items())) or "there are none"
    left = [f"{kind} group {name}" for kind, names in sorted(kinds.items()) if kind in NOT_FOLLOWED for name in names]
    if left:
        way_out = "; ".join(NOT_FOLLOWED[kind] for kind in sorted(kinds) if kind in NOT_FOLLOWED)
        return Finding("warn", what, f"{said}; not followed: {named(left)}", way_out)
    if source_error:
        told = f"; only checkpoints tell of {named(unknown)}: {MAYBE_STREAMS}" if unknown else ""
        way_out = "name those of Kafka Streams in streams.applications" if unknown else ""
        seen = f"last seen: {said}; share groups, if there are any, are not followed{told}"
        return Finding("warn", what, seen, way_out)
    return Finding("ok", what, said)


def _names(groups: Sequence[GroupPoint]) -> Finding:
    what = "groups use the names that topics have on the target"
    found = sorted(
        {f"{point.group} reads {point.topic}, which is {point.remote_topic}" for point in groups if point.other_name}
    )
    fine = "none has read anything else there" if groups else "there are none"
    return judged("warn", what, found, fine, way_out="let their consumers subscribe to these names there")


def _streams(applications: Sequence[str], partitions: Sequence[PartitionPoint]) -> Iterator[Finding]:
    """Yield for each Kafka Streams application whether it finds its state on the target."""
    for application in applications:
        what = f"Streams application {application} finds its state"
        names = {each.topic: each.remote_topic for each in partitions if is_internal_of(application, each.topic)}
        renamed = [f"{topic} is {remote}" for topic, remote in sorted(names.items()) if topic != remote]
        if not names:
            yield Finding("warn", what, "no changelog or repartition topic of it is there", "is it its application.id?")
        elif renamed:
            way_out = (
                "replication.policy.class = IdentityReplicationPolicy, or let it build its state again from its input"
            )
            yield Finding("warn", what, f"it looks for other names: {named(renamed)}", way_out)
        else:
            said = f"{counted(len(names), 'topic')} under their own names; start it there with an empty state.dir"
            yield Finding("ok", what, said)


def drift_finding(flow: str, drift: Sequence[Drift] | None, refused: Sequence[str]) -> Finding:
    """Differences of the target's topics, configs and ACLs; ``drift`` None: the source can't be asked."""
    what = "topics, configs and ACLs are as on the source"
    if drift is None:
        return Finding("warn", what, "not known while the source can't be reached")
    if refused:
        return Finding("stop", what, f"not replicated at all: {named(list(refused))}", command("topics", flow=flow))
    lacking, stays = ([each for each in drift if each.will_change is wanted] for wanted in (True, False))
    if lacking:
        said = f"{counted(len(lacking), 'difference')}: {named([f'{each.remote}: {each.what}' for each in lacking])}"
        return Finding("warn", what, said, command("topics", flow=flow))
    names = sorted({each.what for each in stays})
    return Finding("ok", what, f"no difference but what stays on purpose: {named(names)}" if names else "no difference")


def reverse_finding(flow: str, has_reverse: bool, level: Level = "warn") -> Finding:
    what, back = "there is a reverse flow", "->".join(reversed(flow.split("->")))
    if has_reverse:
        return Finding("ok", what, f"{back} is enabled")
    return Finding(level, what, f"{back} is not enabled", f"set `{back}.enabled = true` before the day")

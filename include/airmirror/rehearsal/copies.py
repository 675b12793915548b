"""Copies of a flow's newest records in shadow topics: made, verified, closed and compared by windows of a flow of its own.

Its source has an alias of its own, and so have its segment topic, progress and transactional ids: the windows of the flow that it
stands for know nothing of it. Its ledger is gone when it is over.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.deletion import delete_topics
from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.flows.audit import Audited, Range, audit
from airmirror.flows.closing import close, overtaking
from airmirror.flows.draining import MOST_WINDOWS, SLOTS, in_threads
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.ledger import Ledger
from airmirror.partitions import TopicPartition
from airmirror.rehearsal.shadows import END
from airmirror.topics.internal import ensure_internal_topics
from airmirror.windows import resetting
from airmirror.windows.continuing import commit, continue_after
from airmirror.windows.fence import fence_around
from airmirror.windows.index import InternalTopics
from airmirror.windows.mirror import Mirror
from airmirror.windows.resets import Choice, Kept
from airmirror.windows.results import WindowResult
from airmirror.windows.window import run_window

Tell = Callable[[str], None]
REASON, BY = "a rehearsal", "airmirror"


@dataclass(frozen=True)
class Copies:
    """The flow of the copies: ``names`` are the source's topics with their shadows, ``starts`` and ``ends`` the source offsets
    that are copied of each partition, the end not included."""

    opened: Opened
    names: Mapping[str, str]
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]

    def remote(self, key: TopicPartition) -> TopicPartition:
        """The shadow of a partition of the source."""
        return TopicPartition(self.names[key.topic], key.partition)


@contextmanager
def copies_of(opened: Opened, names: Mapping[str, str], scope: str, most: int) -> Iterator[Copies]:
    """The flow that copies ``most`` source offsets of each partition of these topics into their shadows (``names``), which are
    there. Everything but these topics is removed in the end. Raises what asking the source and making internal topics does."""
    flow = opened.flow
    flow = replace(
        flow,
        source=replace(flow.source, alias=f"{scope}{END}"),
        remote_topics=dict(names),
        returns={},
        window=replace(flow.window, follow_ms=0),
        settings=replace(flow.settings, errors_deadletterqueue_topic_name=""),  # it is production's
    )
    with TemporaryDirectory(prefix="airmirror-") as directory:
        ledger = Ledger(f"sqlite:///{directory}/ledger.db")
        try:
            remove_internal(opened, scope)
            ensure_internal_topics(flow)
            starts, ends = _ranges(opened, names, most)
            yield Copies(replace(opened, flow=flow, ledger=ledger.flow(flow.name)), names, starts, ends)
        finally:
            ledger.close()
            remove_internal(opened, scope)


def remove_internal(opened: Opened, scope: str) -> None:
    """Remove the internal topics of the copies' flow. Raises TopicDeletionRefused, or the target's error."""
    admin, internal = connect(opened.flow.target), InternalTopics.of(f"{scope}{END}")
    delete_topics(admin, sorted({internal.segments, internal.progress} & set(admin.topic_names())))


def make_copies(copies: Copies, tell: Tell) -> list[str]:
    """Copy and verify; what was not, in words. Raises FlowBusy, or a cluster's error."""
    _begin(copies, tell)
    left: list[str] = []
    for number in range(MOST_WINDOWS):
        tell(f"window {number + 1} of the copies")
        result = _window(copies, copies.ends)
        left = [str(row.error) for row in result.rows if row.error is not None] or _unverified(copies)
        if not left or any(row.error is not None for row in result.rows):
            break
    return left


def close_copies(copies: Copies, tell: Tell) -> list[str]:
    """Close them as producers are switched, and run one more window; what that has copied all the same, in words.

    Raises FlowBusy, FenceStuck, or a cluster's error.
    """
    close(copies.opened, copies.names, reason=REASON, by=BY, empty_too=True, tell=tell)
    copied = _window(copies, None).copied
    return [f"{copied:,} records were copied although the topics were closed"] if copied else []


def compare_copies(copies: Copies, tell: Tell) -> list[Audited]:
    """Compare every record of the copies with the source. Raises what ``audit`` does."""
    ranges = [
        Range(*key, copies.starts[key], end) for key, end in sorted(copies.ends.items()) if copies.starts[key] < end
    ]
    if not ranges:
        return []
    return list(audit(copies.opened, ranges, refuse_before=True, refuse_missing=True, tell=tell).partitions)


def deleted_from(copies: Copies, target: Routes) -> list[str]:
    """Return the copies that have lost records at their beginning, in words: nothing deletes there but a person, or a mistake."""
    keys = [copies.remote(key) for key in sorted(copies.ends)]
    starts = offsets_with_patience(target, keys, EARLIEST)
    return [f"{key}: records before offset {start} were deleted" for key, start in starts.items() if start]


def _ranges(
    opened: Opened, names: Mapping[str, str], most: int
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    flow = opened.flow
    with Routes(flow.source, f"airmirror|{flow.name}|rehearsal") as source:
        source.refresh(names)
        keys = [TopicPartition(topic, number) for topic in names for number in range(source.partitions(topic))]
        committed = flow.isolation_level == "read_committed"
        ends = offsets_with_patience(source, keys, LATEST, read_committed=committed)
        earliest = offsets_with_patience(source, keys, EARLIEST)
    return {key: max(earliest[key], ends[key] - most) for key in keys}, ends


def _begin(copies: Copies, tell: Tell) -> None:
    """Commit an account of nothing, from which on windows copy (invariant C)."""
    opened = copies.opened
    with (
        Mirror.open(opened.flow, opened.ledger, "rehearsal") as mirror,
        overtaking(opened, f"rehearsal-{uuid.uuid4().hex[:12]}", tell) as granted,
    ):
        mirror.refresh()
        begun = [
            continue_after(
                mirror,
                facts,
                Kept(()),
                start=copies.starts[facts.key],
                end=copies.starts[facts.key],
                target_end=0,
            )
            for facts in resetting.look(mirror, copies.names, Choice.ACCEPT_LOSS)
            if facts.key in copies.starts
        ]
        commit(mirror, granted, fence_around(granted, 1).numbers[0], begun, by=BY, reason=REASON)
    catch_up_ledger(opened)


def _window(copies: Copies, until: Mapping[TopicPartition, int] | None) -> WindowResult:
    opened = copies.opened
    return run_window(
        opened.flow,
        opened.ledger,
        copies.names,
        in_threads,
        window=f"rehearsal-{uuid.uuid4().hex[:12]}",
        slots=lambda: opened.flow.tasks_max or SLOTS,
        until=until,
    )


def _unverified(copies: Copies) -> list[str]:
    catch_up_ledger(copies.opened)
    verified, found = copies.opened.ledger.state().verified, []
    for key, end in sorted(copies.ends.items()):
        there = verified[key].offset + 1 if key in verified else copies.starts[key]
        if there < end:
            found.append(f"{key}: verified up to {there}, to be copied up to {end}")
    return found

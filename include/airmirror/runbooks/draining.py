"""A source drained before its applications leave it: nobody writes, and all of it is copied by last windows and verified.

Of the whole flow (a planned failover), or of some of its topics (a migration's move group).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from airmirror.clusters.protocol.connection import UnsupportedBroker
from airmirror.clusters.protocol.log import EARLIEST, offsets_with_patience
from airmirror.clusters.protocol.producers import ActiveProducer, active_producers, known_transactions, producers_by_id
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import command
from airmirror.flows.freezing import owners_now, taken
from airmirror.flows.measure import measure_window
from airmirror.flows.prepare import (
    Opened,
    Prepared,
    catch_up_soon,
    caught_up,
    plan_topics,
    prepare,
    without_frozen,
    without_new,
)
from airmirror.partitions import TopicPartition, grouped
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.stillness import Ends, await_still, ends_of
from airmirror.slot.attempts import run_slot
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.errors import SlotFenced
from airmirror.tell import Tell, silent
from airmirror.times import utc
from airmirror.windows.demand import Demand, at_most, slots_for
from airmirror.windows.errors import FlowBusy, ProgressDiffers
from airmirror.windows.fence import end_window, new_window
from airmirror.windows.mirror import Mirror
from airmirror.windows.planning import make_plan
from airmirror.windows.window import WindowOrder, run_window
from airmirror.wire.leases import LeaseEntry, holder

SLOTS = 4
MOST_WINDOWS = 100  # each of at most window.max.ms
LOOK_SECONDS = 0.2
RECENT_MS = 60_000  # who wrote so long before the last one is not named
UNKNOWN_WRITER = "a producer that no broker remembers (without idempotence)"


class SourceNotQuiet(RunbookError, transient=True):
    """A source that is still written to; where, and by which producers, as far as its brokers tell."""

    seconds: float
    says = (
        "the source is still written to after {0.seconds:.0f} s, so that this run froze nothing. Stop these producers, and do "
        "this again"
    )


class NotDrained(RunbookError, transient=True):
    """Partitions of which not everything is verified on the target; nothing was changed."""

    says = "not everything is verified on the target, so that nothing was changed; {airmirror:status} shows what holds it up"


class DrainStopped(NotDrained, transient=False):
    """The same for an error that does not pass by itself."""


def await_quiet(
    opened: Opened,
    *,
    still_ms: int,
    seconds: float,
    topics: Collection[str] | None = None,
    tell: Tell = silent,
) -> None:
    """Return when for ``still_ms`` no end offset of ``topics`` (None: of the flow) has moved and no transaction was open.

    ``seconds``: how long that may take. Raises SourceNotQuiet.
    """
    flow = opened.flow
    with Routes(flow.source, _client(opened)) as source:
        left = await_still(
            source,
            _topics(opened) if topics is None else topics,
            still=still_ms / 1000,
            seconds=seconds,
            reasons=lambda moving: _with_writers(source, moving),
            tell=tell,
        )
    if left:
        raise SourceNotQuiet(flow.name, tuple(left), seconds)


def drain(opened: Opened, tell: Tell = silent) -> None:
    """Run last windows, in this process, until all on the source that is not frozen is verified. A window at work is ended.

    Judged by the engine's own checks; what a gate or a person holds stays held. Raises NotDrained, or a cluster's error.
    """
    for number in range(MOST_WINDOWS):
        left = undrained(opened, open_topics(opened))
        if not left:
            break
        tell(f"last window {number + 1}: {left[0]}")
        try:
            _last_window(opened, None, tell)
        except FlowBusy as busy:
            tell(f"ending window {busy.window} of {busy.owner}")
            end_window(opened.flow, opened.ledger, busy.window)
    check_drained(opened)


def check_drained(opened: Opened, topics: Collection[str] | None = None) -> None:
    """Raise NotDrained where ``topics`` (None: all that is not frozen) have more than what is verified, DrainStopped where no
    window could copy what is there, or comes."""
    if left := undrained(opened, open_topics(opened) if topics is None else topics):
        raise NotDrained(opened.flow.name, tuple(left))
    if wrong := stopped(opened, topics):
        raise DrainStopped(opened.flow.name, tuple(wrong))


def stopped(opened: Opened, topics: Collection[str] | None = None) -> list[str]:
    """Return what stops windows of ``topics`` (None: of the flow) for good, but for what is frozen, also where no offset is new:
    a topic that is refused or was made again, a log that was cut, on either cluster."""
    opened, ledger = caught_up(opened, soon=True), opened.ledger
    planned = without_frozen(opened, plan_topics(opened))
    its = taken(opened.flow, ledger.owners(), planned.topics) if topics is None else topics
    with Mirror.open(opened.flow, ledger, "drain") as mirror:
        mirror.refresh()
        rows = make_plan(mirror, ledger.state(), {each: planned.topics[each] for each in its if each in planned.topics})
    errors = [row.error for row in without_new(planned, rows) if row.error is not None and not row.error.transient]
    # A commit looks as if progress differed while it is read.
    found = [str(each) for each in errors if not isinstance(each, ProgressDiffers)]
    return found if topics is not None else [*map(str, planned.refused), *found]


def prove_past(opened: Opened, wanted: Ends, seconds: float, tell: Tell = silent) -> None:
    """Return when all before these source offsets is verified: by the window that is at work, by windows of this process where
    none is. No window is ended. Raises NotDrained after ``seconds``, DrainStopped, or a cluster's error.
    """
    ends, topics = time.monotonic() + seconds, {key.topic for key in wanted}
    with Routes(opened.flow.source, _client(opened)) as source:
        source.refresh(topics)
        starts, ids = offsets_with_patience(source, wanted, EARLIEST), source.topic_ids
    while True:
        catch_up_soon(opened)
        left = _unproven(opened, wanted, starts, ids)
        if left and not _is_leased(opened):
            try:
                _last_window(opened, topics, tell)
            except FlowBusy as busy:
                tell(f"window {busy.window} of {busy.owner} is at work")
            left = _unproven(opened, wanted, starts, ids)
        if not left:
            if wrong := stopped(opened, topics):
                raise DrainStopped(opened.flow.name, tuple(wrong))
            return
        if time.monotonic() > ends:
            raise NotDrained(opened.flow.name, tuple(left))
        tell(left[0])
        time.sleep(LOOK_SECONDS)  # the sampling interval: nothing tells what another window has verified


def undrained(opened: Opened, topics: Collection[str] | None = None) -> list[str]:
    """Return the partitions of ``topics`` (None: of the flow) that have more than what is verified on the target, in words."""
    catch_up_soon(opened)
    with Routes(opened.flow.source, _client(opened)) as source:
        ends = ends_of(source, _topics(opened) if topics is None else topics)
        starts = offsets_with_patience(source, ends, EARLIEST)
        return _unproven(opened, ends, starts, source.topic_ids)


def open_topics(opened: Opened) -> set[str]:
    """Return the topics of the flow that are not frozen: windows write to their remote topics."""
    owners = owners_now(opened)
    return {topic for topic in _topics(opened) if owners.why_frozen(topic) is None}


def _unproven(opened: Opened, wanted: Ends, starts: Ends, ids: Mapping[str, UUID]) -> list[str]:
    """The partitions of which less than ``wanted`` is verified, by the ledger as it is; ``starts``: where logs begin; ``ids``:
    the topics' own now: of one that was made again nothing is verified."""
    state, found = opened.ledger.state(), []
    for key, end in sorted(wanted.items()):
        mark = state.verified.get(key)
        is_same = mark is not None and ids.get(key.topic, mark.source_topic_id) == mark.source_topic_id
        verified = mark.offset + 1 if mark and is_same else starts[key]
        if verified < end:
            found.append(f"{key}: verified up to {verified}, the source ends at {end}")
    return found


def _last_window(opened: Opened, topics: Collection[str] | None, tell: Tell) -> None:
    """One window of ``topics`` (None: of the flow). Raises FlowBusy, a cluster's error, or NotDrained where it is not well."""
    prepared = prepare(opened)

    def only(key: TopicPartition) -> bool:
        return topics is None or key.topic in topics

    def slots(demand: Demand) -> int:
        return slots_for(demand, opened.flow.window, at_most(opened.flow.tasks_max or SLOTS))

    window = new_window("last")
    order = WindowOrder(window, slots=slots, only=only, tell=tell)
    result = run_window(prepared.opened.flow, prepared.opened.ledger, prepared.topics, in_threads, order)
    measure_window(prepared.opened, result, only)
    errors = [row.error for row in result.rows if row.error is not None and only(row.key)]
    # What another window has overtaken, the next one continues: final for this window alone.
    final = [error for error in errors if not error.transient and not isinstance(error, SlotFenced)]
    wrong, stopped = [*map(str, errors)], bool(final) or prepared.is_refused_for_good
    if topics is None:
        wrong += _refused(prepared)
    else:
        why = command("topics", flow=opened.flow.name)
        wrong += [
            f"{topic} is not replicated now: {why} says why" for topic in sorted(set(topics) - set(prepared.topics))
        ]
    if wrong:
        raise (DrainStopped if stopped else NotDrained)(opened.flow.name, tuple(wrong))


def _is_leased(opened: Opened) -> bool:
    """Return whether a window is at work, by the ledger, which has caught up."""
    held = holder((LeaseEntry(*each) for each in opened.ledger.leases()), compacted=True)
    return held is not None and held.alive_at(int(time.time() * 1000))


def _topics(opened: Opened) -> set[str]:
    """The source's topics that the flow replicates, also where it is frozen, but for those that another order has named."""
    planned, known = plan_topics(opened, frozen_too=True), opened.ledger.state().known
    return taken(opened.flow, opened.ledger.owners(), {*planned.topics, *(topic for topic, _ in known)})


def _refused(prepared: Prepared) -> list[str]:
    """The refusals of the flow, but for those of topics that are frozen."""
    if not prepared.refused:
        return []
    owners, planned = prepared.opened.ledger.owners(), plan_topics(prepared.opened)
    frozen = {str(each) for each in planned.refused if owners.why_frozen(each.topic)}
    return [each for each in prepared.refused if each not in frozen]


def _with_writers(source: Routes, moving: Mapping[TopicPartition, str]) -> list[str]:
    """Return what moves, in words, with the last producers of each partition as far as brokers tell."""
    writers = last_writers(source, moving) if moving else {}
    if writers is None:
        return list(moving.values())
    return [f"{what}, by {writers.get(key, UNKNOWN_WRITER)}" for key, what in moving.items()]


def last_writers(source: Routes, keys: Collection[TopicPartition]) -> dict[TopicPartition, str] | None:
    """Return the last producers of each partition in words, none that has no id; None: these brokers can't tell."""
    try:
        told = active_producers(source, keys)
        names = producers_by_id(known_transactions(source))
    except UnsupportedBroker:
        return None
    newest_first = sorted(told.found, key=lambda one: (one.open_from >= 0, one.last_ms), reverse=True)
    found = {}
    for key, its in grouped((each.partition, each) for each in newest_first).items():
        recent = [each for each in its if each.open_from >= 0 or its[0].last_ms - each.last_ms < RECENT_MS]
        found[key] = "; ".join(_in_words(each, names) for each in recent)
    return found


def _in_words(each: ActiveProducer, names: Mapping[int, str]) -> str:
    opens = ", with an open transaction" if each.open_from >= 0 else ""
    called = f" of transactional id {names[each.producer_id]}" if names.get(each.producer_id) else ""
    return (
        f"producer {each.producer_id}{called} (epoch {each.epoch}, last sequence "
        f"{each.last_sequence}, last at {utc(each.last_ms)}{opens})"
    )


def _client(opened: Opened) -> str:
    return f"airmirror|{opened.flow.name}|drain"


def in_threads(slots: Sequence[Slot]) -> list[SlotResult]:
    """Run slots in this process: whoever cuts applications over, or rehearses it, does not wait for Spark."""
    with ThreadPoolExecutor(len(slots), "slot") as pool:
        return [result for results in pool.map(run_slot, slots) for result in results]

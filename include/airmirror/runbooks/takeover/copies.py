"""``airmirror takeover``: MirrorMaker 2's copies as the flow will resume after them, and how they are taken over.

Taking over commits, under the flow's lease, where each partition resumes, and the mappings of what MirrorMaker 2 has copied
that this flow has no account of; the next window copies what comes after it, and its gate compares what was taken over with
the source, record by record (invariants C and F).
"""

from __future__ import annotations

from dataclasses import dataclass

from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError, counted
from airmirror.flows.prepare import Opened, catch_up_ledger, plan_topics, prepare
from airmirror.partitions import CopyFacts
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.runbook import SILENT, Progress
from airmirror.runbooks.stillness import await_still
from airmirror.runbooks.takeover.order import TakeoverOrder
from airmirror.tell import Tell, silent
from airmirror.windows.connect_offsets import Recorded, recorded_progress, with_connect_offsets
from airmirror.windows.fence import fence_around, leased, new_window
from airmirror.windows.handover import Found, look_at_copies
from airmirror.windows.mirror import Mirror
from airmirror.windows.mirrormaker import writers
from airmirror.windows.plan import Planned
from airmirror.windows.planning import frozen_now, make_plan
from airmirror.windows.starts import commit_copies
from airmirror.windows.takeover import TakenOver

STILL_SECONDS = 5.0  # more than a request of a producer that was killed may take to arrive


@dataclass(frozen=True)
class Continued(CopyFacts):
    """One partition of the flow, and where it resumes.

    ``recorded``: the source offset that MirrorMaker 2 says it has copied last, -1 none. ``copied``: records on the target that
    this flow has no account of yet and recognises; ``again``: those that are there twice. ``end``: of the source's log.
    ``since``: the source offset from which on a take-over makes positions exact; -1: there is nothing to be taken over.
    """

    recorded: int
    since: int
    start: int
    end: int
    copied: int
    again: int
    error: AirmirrorError | None


class TakenOverAsAWhole(AirmirrorError, bad_input=True):
    """Topics that are named in an order to take over: only its step history is for single topics."""

    flow: str
    topics: tuple[str, ...]
    says = (
        "flow {0.flow!r} is taken over as a whole: leave out --topic, or take this step alone: "
        "{airmirror:takeover run --step history --reason … --yes}"
    )


class MirrorMakerRuns(RunbookError, transient=True):
    """MirrorMaker 2 is not stopped; who of it is left, and where something still moves."""

    seconds: float
    says = (
        "MirrorMaker 2 is not stopped after {0.seconds:.0f} s, and nothing was taken over; stop it (its process, or its "
        "connectors: PUT /connectors/<name>/stop; of a process with other flows too: {0.flow}.enabled = false and "
        "{0.flow}.emit.heartbeats.enabled = false in its file), then {airmirror:takeover run --reason … --yes}"
    )


def check_whole(opened: Opened, order: TakeoverOrder) -> None:
    if order.topics:
        raise TakenOverAsAWhole(opened.flow.name, order.topics)


def take_over(opened: Opened, order: TakeoverOrder, progress: Progress = SILENT) -> list[Continued]:
    """Wait until MirrorMaker 2 is stopped, then take over. Raises TakenOverAsAWhole, MirrorMakerRuns, and what
    ``take_over_copies`` does."""
    check_whole(opened, order)
    await_stopped(opened, order.wait, tell=progress.phase)
    rows = take_over_copies(opened, order.by, new_window("takeover"), progress.phase)
    for row in rows:
        twice = f", {row.again:,} of its copies are there twice" if row.again else ""
        if row.error is None:
            after = f"after {counted(row.copied, 'record')} taken over{twice}"
            progress.line(f"{row.topic}-{row.partition} continues at {row.start}, {after}")
    return rows


def await_stopped(opened: Opened, seconds: float, still: float = STILL_SECONDS, tell: Tell = silent) -> None:
    """Return when for ``still`` seconds nobody of it was seen and nothing has moved. Raises MirrorMakerRuns after ``seconds``."""
    flow = opened.flow
    remote = set(plan_topics(opened).topics.values())
    with Routes(flow.target, f"airmirror|{flow.name}|takeover") as target:
        left = await_still(
            target,
            remote,
            still=still,
            seconds=seconds,
            reasons=lambda moving: [*writers(target, flow), *moving.values()],
            tell=tell,
        )
    if left:
        raise MirrorMakerRuns(flow.name, tuple(left), seconds)


def take_over_copies(opened: Opened, by: str, window: str, tell: Tell = silent) -> list[Continued]:
    """Take over every partition that can be; one that can't is in error and stays as it is. MirrorMaker 2 is stopped.

    Done under a lease of the name ``window``. Raises FlowBusy, FenceStuck, what ``prepare`` raises, or a cluster's error.
    """
    prepared = prepare(opened, tell)
    opened = prepared.opened
    with Mirror.open(opened.flow, opened.ledger, "takeover") as mirror:
        mirror.refresh()
        with leased(mirror, window, slots=1) as granted:
            tell("fencing what earlier windows may have left")
            fenced = fence_around(granted, 1)
            tell("following what MirrorMaker 2 has copied")
            recorded = recorded_progress(mirror.target, opened.flow)
            state = mirror.current_state()
            granted.check_open()
            shut = frozen_now(mirror, prepared.topics)
            topics = {topic: remote for topic, remote in prepared.topics.items() if topic not in shut}
            state = with_connect_offsets(mirror, state, topics)
            planned = make_plan(mirror, state, topics)
            found = look_at_copies(mirror, state, planned, {key: each.offset for key, each in recorded.items()})
            copies = [each for each in found.values() if isinstance(each, TakenOver)]
            tell(f"committing where {counted(len(copies), 'partition')} continue")
            commit_copies(mirror, granted, fenced.numbers[0], copies, by)
    catch_up_ledger(opened)
    return [continued(item, recorded.get(item.key), found.get(item.key)) for item in planned]


def continued(item: Planned, recorded: Recorded | None, found: Found | None) -> Continued:
    """Return where a partition resumes, by MirrorMaker 2's account and what was found of its copies."""
    copies = found if isinstance(found, TakenOver) else None
    return Continued(
        *item.key,
        remote_topic=item.remote_topic,
        recorded=-1 if recorded is None else recorded.offset,
        since=copies.accounts[0].start if copies else -1,
        start=item.start if copies is None else copies.end,
        end=max(item.high_watermark, item.start if copies is None else copies.end),
        copied=0 if copies is None else copies.copied,
        again=0 if copies is None else copies.again,
        error=found if isinstance(found, AirmirrorError) else None if copies else item.error,
    )

"""A hand-back as people and programs are shown it: where MirrorMaker 2 continues, what was written, whether it has resumed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from airmirror.errors import command, counted
from airmirror.flows.prepare import Opened
from airmirror.naming import progress_topic
from airmirror.offsets.files.writing import PositionsNotWritten
from airmirror.report.document import Document, Finding, Section
from airmirror.rows import rows_of
from airmirror.runbooks.runbook import Progress, Ran
from airmirror.runbooks.takeover.handback import CopiedPosition, next_positions, rest_body
from airmirror.runbooks.takeover.handback_check import (
    CopyDifference,
    FirstRecords,
    HandbackCheck,
    HandbackVerdict,
    check_handback,
)
from airmirror.runbooks.takeover.order import HandbackOrder

CHECKED = "topic partition handed_back_at first_record on_the_target compared found"


def planned(opened: Opened, order: HandbackOrder, progress: Progress) -> Document:
    """The document of where MirrorMaker 2 would continue, or with ``check`` of whether it has. Raises HandbackRefused,
    CopiedSince, PositionsNotWritten, or a cluster's error."""
    if order.check:
        return shown_check(check_handback(opened, order.wait, progress.phase))
    found = next_positions(opened)
    if order.offsets:
        try:
            Path(order.offsets).write_text(json.dumps(rest_body(opened, found), indent=2))
        except OSError as error:
            raise PositionsNotWritten(order.offsets, error.strerror or str(error)) from error
    return _shown_plan(opened, found)


def looked(opened: Opened, order: HandbackOrder, progress: Progress) -> Document:
    """The same of an order to write it: what it would write."""
    return _shown_plan(opened, next_positions(opened))


def ended(opened: Opened, order: HandbackOrder, ran: Ran) -> Document:
    """The document of what was written into the topic of a connector's workers."""
    found, after = ran.gave["write"]
    tasks = [{"task": each.name, "ended": str(each.error or each.said)} for each in after]
    wrong = [each for each in after if each.error]
    failed = f", but {counted(len(wrong), 'task')} after it failed" if wrong else ""
    return Document(
        kind="handback",
        about=f"Hand-back of {opened.flow.name}",
        headline=f"{opened.flow.name}: the progress of {counted(len(found), 'partition')} is written into {order.into}{failed}. "
        f"Once MirrorMaker 2 runs: {_check(opened.flow.name)}",
        is_good=not wrong,
        asked={"flow": opened.flow.name, "topic": order.into, "connector": order.name_of(opened.flow)},
        numbers={"milliseconds": round(ran.seconds * 1000)},
        sections=[_positions(found), Section("tasks", tasks, "Tasks that were due", brief="*")],
        by=order.by,
        reason=order.reason,
    )


def _shown_plan(opened: Opened, found: Sequence[CopiedPosition]) -> Document:
    flow = opened.flow.name
    topic = progress_topic(opened.flow.source.alias)
    file = command("handback", "plan", "--offsets", "offsets.json", flow=flow)
    write = command("handback", "run", "--topic", "…", "--reason", "…", "--yes", flow=flow)
    return Document(
        kind="handback plan",
        about=f"Hand-back plan of {flow}",
        headline=f"{flow}: MirrorMaker 2 can continue in {counted(len(found), 'partition')}. Once it runs: {_check(flow)}",
        is_good=True,
        asked={"flow": flow},
        findings=[
            Finding("ok", "a dedicated MirrorMaker 2 finds its progress", f"in {topic}"),
            Finding(
                "ok", "a stopped connector can be given it", f"for Connect's REST API: {file}; in its topic: {write}"
            ),
        ],
        sections=[_positions(found)],
    )


def _positions(found: Sequence[CopiedPosition]) -> Section:
    rows = rows_of(found, "topic partition copied_last=offset continues_at", continues_at=lambda each: each.offset + 1)
    return Section("partitions", rows, "Where MirrorMaker 2 continues", brief="*", empty="nothing was copied")


def shown_check(checked: HandbackCheck) -> Document:
    """The document of its first records after a hand-back; not good where one partition was not seen to resume."""
    flow, rows = checked.flow, checked.partitions
    resumed = sum(row.verdict is HandbackVerdict.RESUMED for row in rows)
    stop = (
        f" Stop it; {command('takeover', 'plan', flow=flow)} shows what it has copied since."
        if checked.is_wrong
        else ""
    )
    partitions = rows_of(
        rows,
        "topic=key.topic partition=key.partition remote_topic handed_back_at=position first_record on_the_target "
        "compared=records found",
        first_record=lambda row: row.first and row.first[0],
        on_the_target=lambda row: row.first and row.first[1],
        found=lambda row: f"{row.verdict}: {row.reason}" if row.reason else str(row.verdict),
    )
    differences = [
        {"difference": str(each.what), "where": _where(row, each)} for row in rows for each in row.differences
    ]
    runs = [Finding("ok", "MirrorMaker 2 runs", each) for each in checked.running]
    unseen = Finding("warn", "MirrorMaker 2 runs", checked.warning or "none of its workers is seen on the target")
    return Document(
        kind="handback check",
        about=f"Check of the hand-back of {flow}",
        headline=f"{flow}: MirrorMaker 2 has resumed at the very next record in {resumed} of {counted(len(rows), 'partition')}."
        f"{stop}",
        is_good=checked.has_resumed,
        asked={"flow": flow},
        findings=runs or [unseen],
        sections=[
            Section(
                "partitions",
                partitions,
                "Where MirrorMaker 2 resumed",
                brief=CHECKED,
                empty="nothing was copied, so nothing was handed back",
            ),
            Section("differences", differences, "Differences", brief="*", empty=""),
        ],
    )


def _where(row: FirstRecords, each: CopyDifference) -> str:
    place = f"{row.remote_topic}-{row.key.partition}"
    of_source = f"source offsets {each.source[0]} to {each.source[1] - 1}"
    if each.what is HandbackVerdict.GAP:
        records = "records" if each.records < 0 else counted(each.records, "record")
        return f"{row.key}, {of_source}: {records} not on the target before {place} offset {each.target[0]}"
    where = f"{place}, offsets {each.target[0]} to {each.target[1] - 1}"
    if each.what is HandbackVerdict.TWICE:
        return f"{where}: again {of_source}{'' if each.records >= 0 else ', and what follows there'}"
    return where


def _check(flow: str) -> str:
    return command("handback", "plan", "--check", flow=flow)

"""``airmirror report``: a flow's report, computed from its mapping topic, which is the record; the ledger is compared with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from tempfile import TemporaryDirectory
from typing import Any

from airmirror.clusters.protocol.routes import TopicNotDescribed, TopicNotFound
from airmirror.config import Flow
from airmirror.errors import AirmirrorError, counted
from airmirror.flows.gates import Expectations, expectations_of
from airmirror.flows.positions import list_positions
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.flows.report_now import Now, contradictions, expectations, left, now, versions
from airmirror.flows.report_rows import Span, StatedRange, cut_off, progress, told, windows
from airmirror.ledger import FlowLedger, Ledger
from airmirror.report.document import Document, titled
from airmirror.times import utc
from airmirror.windows.index import InternalTopics
from airmirror.windows.mirror import Journal
from airmirror.wire.mappings import MappingRecord

OF_MAPPING_TOPIC = ("mappings", "newest", "verified", "control")  # the ledger's tables that are read from it
ATTEMPTS = 3  # at comparing the ledger while windows are at work


class NothingToReport(AirmirrorError, bad_input=True):
    """A flow without a mapping topic: it has not run yet."""

    flow: str
    cluster: str
    topic: str
    says = (
        "flow {0.flow!r} has not run yet, or this user may not see it: cluster {0.cluster!r} shows no topic {0.topic!r}; "
        "{airmirror:run-window} runs a first window"
    )


def report_flow(opened: Opened, span: Span, by: Expectations | None = None) -> Document:
    """The report of what was committed within a time; ``by``: the gate's expectations. Nothing is written but the ledger.

    Raises NothingToReport, TopicNotDescribed, and what the target raises; what the source keeps back is in the report.
    """
    with record_of(opened) as record:
        flow, ledger = record.flow, record.ledger
        found = list(told(ledger, flow.source.alias, span))
        ledger_rows, ledger_notes = _compare_ledger(opened, ledger)
        here = now(flow.source, {each.key for each in found if each.is_newest})
        groups, group_notes = _groups(record, here)
        there = now(flow.target, {each.chosen[-1].remote for each in found if each.is_newest})
        positions = ledger.state().positions
        rows = [each.row(left(each, here, positions)) for each in found]
        older = cut_off(ledger, found, span)
        by = by or expectations_of(None)
        wrong = list(contradictions(record, found, here, there))
        numbers = _numbers(found, rows) | {"contradictions": len(wrong)}
        more = _not_known(found, ledger_rows, older, by, numbers["records not read back"])
        return Document(
            kind="flow",
            about=f"Flow {flow.name}",
            headline=_headline(flow, numbers, found, is_cut=any(each.target_start > 0 for each in older)),
            is_good=bool(found) and not (numbers["partitions not proven"] or numbers["offsets lost"] or wrong),
            asked={"flow": flow.name, "from_ms": span.first_ms, "to_ms": span.end_ms},
            numbers=numbers,
            not_known=(*here.not_known, *there.not_known, *group_notes, *ledger_notes, *more),
            sections=titled(
                {
                    "clusters": _clusters(record, here, there),
                    "contradictions": [{"contradiction": line} for line in wrong],
                    "partitions": rows,
                    "windows": windows(found),
                    "progress": progress(found),
                    "holds": [_signed_by(asdict(hold)) for _, hold in sorted(ledger.holds().items())],
                    "decisions": [
                        _signed_by(asdict(each)) | {"action": each.action.name.lower()}
                        for each in ledger.decisions()
                        if span.holds(each.time_ms)
                    ],
                    "losses": [_signed_by(asdict(each)) for each in ledger.resets() if span.holds(each.time_ms)],
                    "groups": groups,
                    "ledger": ledger_rows,
                    "expectations": expectations(flow, by),
                    "versions": versions(record, here, there),
                }
            ),
        )


@contextmanager
def record_of(opened: Opened) -> Iterator[Opened]:
    """The flow with a ledger of its own that was read from the mapping topic just now."""
    topics = InternalTopics.of(opened.flow.source.alias)
    with (
        TemporaryDirectory(prefix="airmirror-report-") as directory,
        Ledger(f"sqlite:///{directory}/record.db") as ledger,
    ):
        fresh = replace(opened, ledger=ledger.flow(opened.flow.name))
        try:
            _read(fresh)
        except TopicNotDescribed:
            raise
        except TopicNotFound as missing:
            if missing.topic not in (topics.mappings, topics.progress):
                raise
            raise NothingToReport(opened.flow.name, opened.flow.target.alias, missing.topic) from missing
        yield fresh


def _read(opened: Opened) -> None:
    with Journal.open(opened.flow, opened.ledger, "report") as journal:
        journal.catch_up()


def _compare_ledger(opened: Opened, record: FlowLedger) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The ledger compared with the topic, table by table; both are read up to one end."""
    if not opened.ledger.state().scanned:
        return [], ("Whether the ledger and the mapping topic differ: the ledger had nothing of this flow.",)
    for _ in range(ATTEMPTS):
        catch_up_ledger(opened)
        _read(replace(opened, ledger=record))
        theirs, ours = opened.ledger.contents(), record.contents()
        if theirs["scanned"] == ours["scanned"]:
            break
    else:
        return [], ("Whether the ledger and the mapping topic differ: windows wrote on while both were read.",)
    rows = []
    for name in OF_MAPPING_TOPIC:
        mirrored, kept = set(theirs[name]), set(ours[name])
        differ = max(len(mirrored - kept), len(kept - mirrored))
        rows.append(
            {"table": name, "in_the_topic": len(ours[name]), "in_the_ledger": len(theirs[name]), "differ": differ}
        )
    return rows, ()


def _groups(record: Opened, here: Now) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    if not here.cluster_id:
        return [], ("Where consumer groups stand: the source was not read.",)
    try:
        rows = [asdict(each) for each in list_positions(record)]
    except AirmirrorError as error:
        return [], (f"Where consumer groups stand: {error}",)
    for row in rows:  # integers only (report/canonical)
        for name in ("lag_seconds", "target_lag_seconds"):
            seconds = row.pop(name)
            row[name.replace("seconds", "milliseconds")] = None if seconds is None else round(seconds * 1000)
    return rows, ()


def _numbers(found: Sequence[StatedRange], rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    unproven = sum(not each.is_proven for each in found)
    numbers: dict[str, int] = {
        "records copied": sum(row["copied"] for row in rows),
        "bytes copied": sum(row["bytes"] for row in rows),
        "partitions": len(found),
        "partitions proven": len(found) - unproven,
        "partitions not proven": unproven,
        "offsets lost": sum(row["lost"] for row in rows),
        "records not read back": sum(each.not_read_back for each in found),
        "partitions held": sum(bool(each.held) for each in found),
    }
    if returned := sum(each.returned for each in found):
        numbers["records returned"] = returned
    if to_copy := [row["left"] for row in rows if row["left"] is not None]:
        numbers["offsets left to copy now"] = sum(to_copy)
    return numbers


def _not_known(
    found: Sequence[StatedRange],
    ledger_rows: Sequence[dict[str, Any]],
    older: Sequence[MappingRecord],
    by: Expectations,
    unread: int,
) -> Iterator[str]:
    if differ := sum(row["differ"] for row in ledger_rows):
        yield f"The ledger differs from the mapping topic in {differ} rows; the topic counts."
    if taken_over := sum(each.taken_over for each in found):
        yield f"{taken_over:,} records were copied by another tool: they were not compared."
    if older:
        last = sorted(older, key=lambda each: each.time_ms)[-1]
        yield (
            f"What of {counted(len(older), 'partition')} lies before the oldest mapping record that is left (the newest of these "
            f"is of {last.key}, {utc(last.time_ms)}): it was not copied, or its mapping records are pruned."
        )
    if found:
        yield (
            "Whether the gate's expectations were the same when a range was judged: those of now are listed, and the page of the "
            "window's gate has those of then."
        )
    if by.suites is None:
        yield f"The gate's expectations: {by.alone}."
    if unread:
        yield (
            f"Whether {unread:,} records are equal on the target: their windows did not read them back (window.verify=acks). "
            "`airmirror verify` compares them."
        )


def _headline(flow: Flow, numbers: Mapping[str, int], found: Sequence[StatedRange], *, is_cut: bool) -> str:
    """One sentence. ``is_cut``: mapping records of the time may be pruned."""
    way = f"from {flow.source.alias} to {flow.target.alias}"
    if not numbers["partitions"]:
        what = f"What was copied {way} in this time is not known any more." if is_cut else ""
        return what or f"Nothing was copied {way} in this time."
    said = f"{numbers['records copied']:,} records were copied {way}"
    if "records returned" in numbers:
        said += f" ({numbers['records returned']:,} of them the other way, by flow {flow.reverse_name!r})"
    if is_cut:
        said += " of which mapping records are left"
    if numbers["partitions not proven"]:
        said += f", but {numbers['partitions not proven']} of {numbers['partitions']} partitions are not proven"
    elif numbers["contradictions"]:
        said += f", but {numbers['contradictions']} things are not now as the record says"
    elif numbers["records not read back"]:
        said += (
            f", and the target has acknowledged each of them; {numbers['records not read back']:,} were not read back"
        )
    elif taken_over := sum(each.taken_over for each in found):
        said += f", and all but {taken_over:,} that another tool had copied were found equal on the target"
    else:
        said += ", and each of them was found equal on the target when it was copied"
    return said + (f"; {numbers['offsets lost']:,} are declared lost." if numbers["offsets lost"] else ".")


def _signed_by(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with time and person first."""
    return {"time_ms": row.pop("time_ms"), "by": row.pop("by")} | row


def _clusters(record: Opened, *now: Now) -> list[dict[str, Any]]:
    """Both clusters: their ids by the record, and as they are now."""
    said, flow = record.ledger.identity(), record.flow
    ids = (said.source_cluster_id, said.target_cluster_id) if said else (None, None)
    return [
        {"side": side, "alias": cluster.alias, "id_in_the_record": known, "id_now": at.cluster_id or None}
        for side, cluster, known, at in zip(("source", "target"), (flow.source, flow.target), ids, now, strict=True)
    ]

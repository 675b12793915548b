"""``airmirror report``: a flow's report, computed from its segment topic, which is the record; the ledger is compared with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from airmirror import __version__
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes, TopicNotDescribed, TopicNotFound
from airmirror.config import Cluster, resolve
from airmirror.errors import AirmirrorError
from airmirror.evidence.canonical import canonical
from airmirror.evidence.report_errors import NothingToReport
from airmirror.evidence.reports import Report, now_ms
from airmirror.flows.positions import list_positions
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.flows.report_rows import Span, Told, progress, told, totals, windows
from airmirror.ledger import FlowLedger, Ledger
from airmirror.partitions import TopicPartition
from airmirror.windows.index import InternalTopics
from airmirror.windows.mirror import Journal

OF_SEGMENT_TOPIC = ("segments", "newest", "verified", "control")  # the ledger's tables that are read from it
ATTEMPTS = 3  # at comparing the ledger while windows are at work
EXPECTATIONS = (
    "By which expectations a range was judged: the segment topic names the window whose gate has let it pass, and that gate's "
    "page has them."
)
READ_BACK = (
    "Whether {:,} records are equal on the target: their windows did not read them back (window.verify=acks, or an older version "
    "of Airmirror, which did not record it). `airmirror verify` compares them."
)


@dataclass(frozen=True)
class Now:
    """The ends of a cluster's logs now, as far as it answered, and the reasons why others are not known."""

    ends: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, UUID]
    cluster_id: str
    not_known: tuple[str, ...]


def report_flow(opened: Opened, span: Span) -> Report:
    """The report of what was committed within a time. Nothing is written but the ledger.

    Raises NothingToReport, TopicNotDescribed, and what the target raises; what the source keeps back is told in the report.
    """
    with _record(opened) as record:
        found = told(record.ledger, opened.flow.source.alias, span)
        ledger_rows, ledger_notes = _compare_ledger(opened, record.ledger)
        here = _now(opened.flow.source, {each.key for each in found if each.is_newest})
        groups, group_notes = _groups(record, here)
        remote = {TopicPartition(each.chosen[-1].remote_topic, each.key.partition) for each in found if each.is_newest}
        there = _now(opened.flow.target, remote)
        state = record.ledger.state().positions
        rows = [each.row(_left(each, here, state)) for each in found]
        notes = (*here.not_known, *there.not_known, *group_notes, *ledger_notes)
        return _report(
            record=record,
            span=span,
            found=found,
            rows=rows,
            ledger_rows=ledger_rows,
            groups=groups,
            now=(here, there),
            notes=notes,
        )


@contextmanager
def _record(opened: Opened) -> Iterator[Opened]:
    """The flow with a ledger of its own that was read from the segment topic just now."""
    topics = InternalTopics.of(opened.flow.source.alias)
    with TemporaryDirectory(prefix="airmirror-report-") as directory:
        ledger = Ledger(f"sqlite:///{directory}/record.db")
        try:
            fresh = replace(opened, ledger=ledger.flow(opened.flow.name))
            try:
                _read(fresh)
            except TopicNotDescribed:
                raise
            except TopicNotFound as missing:
                if missing.topic not in (topics.segments, topics.progress):
                    raise
                raise NothingToReport(opened.flow.name, opened.flow.target.alias, missing.topic) from missing
            yield fresh
        finally:
            ledger.close()


def _read(opened: Opened) -> None:
    with Journal.open(opened.flow, opened.ledger, "report") as journal:
        journal.catch_up()


def _compare_ledger(opened: Opened, record: FlowLedger) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The ledger compared with the topic, table by table; both are read up to one end."""
    if not opened.ledger.state().scanned:
        return [], ("Whether the ledger and the segment topic differ: the ledger had nothing of this flow.",)
    for _ in range(ATTEMPTS):
        catch_up_ledger(opened)
        _read(replace(opened, ledger=record))
        theirs, ours = opened.ledger.contents(), record.contents()
        if theirs["scanned"] == ours["scanned"]:
            break
    else:
        return [], ("Whether the ledger and the segment topic differ: windows wrote on while both were read.",)
    rows = []
    for name in OF_SEGMENT_TOPIC:
        mirrored, kept = set(theirs[name]), set(ours[name])
        differ = max(len(mirrored - kept), len(kept - mirrored))
        rows.append(
            {"table": name, "in_the_topic": len(ours[name]), "in_the_ledger": len(theirs[name]), "differ": differ}
        )
    return rows, ()


def _now(cluster: Cluster, keys: Set[TopicPartition]) -> Now:
    """The ends of logs. Raises nothing that a cluster answers: it is told."""
    try:
        with Routes(cluster, "airmirror|report") as routes:
            missing = routes.refresh_existing({key.topic for key in keys})
            routes.refresh([])
            there = [key for key in keys if key.topic not in missing]
            ends = offsets_with_patience(routes, there, LATEST, read_committed=True)
            return Now(
                ends,
                dict(routes.topic_ids),
                routes.cluster_id,
                tuple(f"Where a log ends now: {error}" for error in missing.values()),
            )
    except AirmirrorError as error:
        return Now({}, {}, "", (f"What cluster {cluster.alias!r} holds now: {error}",))


def _left(each: Told, here: Now, positions: Mapping[tuple[str, int], int]) -> int | None:
    """Offsets of the source that are not copied yet; None: not known, or another topic has that name now."""
    end = here.ends.get(each.key) if each.is_newest else None
    if end is None or here.topic_ids.get(each.key.topic) != each.chosen[-1].source_topic_id:
        return None
    return max(0, end - positions.get(each.key, 0))


def _contradictions(record: Opened, found: Sequence[Told], here: Now, there: Now) -> list[str]:
    """Clusters, topics and logs that are not now what the record says they were."""
    said, lines = record.ledger.identity(), []
    ids = (said.source_cluster_id, said.target_cluster_id) if said else ("", "")
    for cluster, known, now in zip((record.flow.source, record.flow.target), ids, (here, there), strict=True):
        if known and now.cluster_id and known != now.cluster_id:
            lines.append(
                f"Cluster {cluster.alias!r} is another one now: its id is {now.cluster_id}, the record says {known}."
            )
    for each in found:
        last = each.chosen[-1]
        remote = TopicPartition(last.remote_topic, each.key.partition)
        sides = ((here, each.key, last.source_topic_id, "source"), (there, remote, last.target_topic_id, "target"))
        for now, key, topic_id, side in sides if each.is_newest else ():
            if now.topic_ids.get(key.topic, topic_id) != topic_id:
                lines.append(f"{key}: the {side} has another topic of that name now; the one of the record is gone.")
        if each.is_newest and there.ends.get(remote, last.target_end) < last.target_end:
            lines.append(
                f"{remote}: the target's log ends at {there.ends[remote]} now, the record reached {last.target_end}."
            )
    return lines


def _groups(record: Opened, here: Now) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    if not here.cluster_id:
        return [], ("Where consumer groups stand: the source was not read.",)
    try:
        rows = [each.as_dict() for each in list_positions(record)]
    except AirmirrorError as error:
        return [], (f"Where consumer groups stand: {error}",)
    for row in rows:  # integers only (evidence/canonical)
        for name in ("lag_seconds", "target_lag_seconds"):
            seconds = row.pop(name)
            row[name.replace("seconds", "milliseconds")] = None if seconds is None else round(seconds * 1000)
    return rows, ()


def _report(
    record: Opened,
    span: Span,
    found: Sequence[Told],
    rows: Sequence[dict[str, Any]],
    ledger_rows: Sequence[dict[str, Any]],
    groups: Sequence[dict[str, Any]],
    now: tuple[Now, Now],
    notes: Sequence[str],
) -> Report:
    flow, ledger = record.flow, record.ledger
    unproven = sum(not each.is_proven for each in found)
    counted = totals(rows, "copied", "bytes", "lost")
    differ = sum(row["differ"] for row in ledger_rows)
    left = [row["left"] for row in rows if row["left"] is not None]
    taken_over = sum(each.taken_over for each in found)
    numbers = {
        "records copied": counted["copied"],
        "bytes copied": counted["bytes"],
        "partitions": len(found),
        "partitions proven": len(found) - unproven,
        "partitions not proven": unproven,
        "offsets lost": counted["lost"],
        "records not read back": sum(each.not_read_back for each in found),
        "partitions held": sum(bool(each.held) for each in found),
    }
    if left:
        numbers["offsets left to copy now"] = sum(left)
    more = [f"The ledger differs from the segment topic in {differ} rows; the topic counts."] if differ else []
    if taken_over:
        more.append(
            f"{taken_over:,} records were copied by another tool before the flow began: nobody has compared them."
        )
    if any(each.chosen[0].source_start > 0 for each in found) and span.first_ms is None:
        more.append("What lies before the first offset of a range: it was not copied, or its records are pruned.")
    if found:
        more.append(EXPECTATIONS)
    if numbers["records not read back"]:
        more.append(READ_BACK.format(numbers["records not read back"]))
    wrong = _contradictions(record, found, *now)
    numbers["contradictions"] = len(wrong)
    return Report(
        kind="flow",
        about=f"Flow {flow.name}",
        verdict=_verdict(record, numbers, taken_over),
        is_good=bool(found) and not (unproven or counted["lost"] or wrong),
        asked={"flow": flow.name, "from_ms": span.first_ms, "to_ms": span.end_ms},
        numbers=numbers,
        not_known=(*notes, *more),
        sections={
            "clusters": _clusters(record, now),
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
            "versions": _versions(record),
        },
        made_ms=now_ms(),
    )


def _verdict(record: Opened, numbers: Mapping[str, int], taken_over: int) -> str:
    """One sentence."""
    flow = record.flow
    way = f"from {flow.source.alias} to {flow.target.alias}"
    if not numbers["partitions"]:
        return f"Nothing was copied {way} in this time."
    said = f"{numbers['records copied']:,} records were copied {way}"
    if numbers["partitions not proven"]:
        said += f", but {numbers['partitions not proven']} of {numbers['partitions']} partitions are not proven"
    elif numbers["contradictions"]:
        said += f", but {numbers['contradictions']} things are not now as the record says"
    elif numbers["records not read back"]:
        said += (
            f", and the target has acknowledged each of them; {numbers['records not read back']:,} were not read back"
        )
    elif taken_over:
        said += f", and all but {taken_over:,} that another tool had copied were found equal on the target"
    else:
        said += ", and each of them was found equal on the target when it was copied"
    return said + (f"; {numbers['offsets lost']:,} are declared lost." if numbers["offsets lost"] else ".")


def _signed_by(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with time and person first."""
    return {"time_ms": row.pop("time_ms"), "by": row.pop("by")} | row


def _clusters(record: Opened, now: tuple[Now, Now]) -> list[dict[str, Any]]:
    """Both clusters: their ids by the record, and as they are now."""
    said, flow = record.ledger.identity(), record.flow
    ids = (said.source_cluster_id, said.target_cluster_id) if said else (None, None)
    return [
        {"side": side, "alias": cluster.alias, "id_in_the_record": known, "id_now": at.cluster_id or None}
        for side, cluster, known, at in zip(("source", "target"), (flow.source, flow.target), ids, now, strict=True)
    ]


def _versions(record: Opened) -> list[dict[str, Any]]:
    rows = [
        [row.key, row.value] for row in sorted(resolve(record.configuration, record.flow.name), key=lambda row: row.key)
    ]
    digest = hashlib.sha256(canonical(rows)).hexdigest()
    return [
        {"name": "Airmirror", "value": __version__},
        {"name": "format of the segment topic", "value": "1"},
        {"name": "window.verify", "value": record.flow.window.verify},
        {"name": "SHA-256 of the configuration, secrets masked", "value": digest},
    ]

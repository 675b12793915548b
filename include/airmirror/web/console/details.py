"""The console's pages of a partition, of topics and of groups. Of the ledger alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from airmirror.flows.status import failing_now
from airmirror.ledger import GroupLag, GroupOffset, Ledger
from airmirror.ledger.database import reading
from airmirror.ledger.showing import PartitionRow, partitions, story, verified_of
from airmirror.wire.segments import Decision, Hold, ResetRecord, SegmentRecord

MOST_RANGES = 200
MOST_ROWS = 5_000  # of a page of groups


def partition_page(ledger: Ledger, flow: str, key: tuple[str, int], before: int | None) -> dict[str, Any] | None:
    """A partition's story: its ranges, the newest first, and all that was decided. None: the ledger knows nothing of it."""
    of_flow = ledger.flow(flow)
    with reading(ledger.engine) as connection:
        ranges = story(connection, flow, key, MOST_RANGES + 1, before)
        own = partitions(connection, flow, key)
        verified = verified_of(connection, flow, key)
    if not ranges and not own and before is None:
        return None
    hold = of_flow.holds().get(key)
    return {
        "topic": key[0],
        "partition": key[1],
        "numbers": asdict(own[0]) if own else None,
        "verified": None
        if verified is None
        else {
            "offset": verified.offset,
            "target_end": verified.target_end,
            "window": verified.window,
            "time_ms": verified.time_ms,
        },
        "hold": None if hold is None else _hold(hold),
        "decisions": [_decision(each) for each in of_flow.decisions() if (each.topic, each.partition) == key],
        "resets": [_reset(each) for each in of_flow.resets() if (each.topic, each.partition) == key],
        "failing": [asdict(each) for each in failing_now(of_flow) if (each.topic, each.partition) == key],
        "ranges": [
            _range(record, verified is not None and _is_passed(record, verified.source_topic_id, verified.offset))
            for record in ranges[:MOST_RANGES]
        ],
        "more": len(ranges) > MOST_RANGES,
    }


def topics_page(ledger: Ledger, flow: str) -> list[dict[str, Any]]:
    """The flow's topics, by name, each the sums of its partitions; times in epoch milliseconds."""
    with reading(ledger.engine) as connection:
        rows = partitions(connection, flow)
    held = ledger.flow(flow).holds()
    by_topic: dict[str, list[PartitionRow]] = {}
    for row in rows:
        by_topic.setdefault(row.topic, []).append(row)
    return [_topic(topic, of_topic, held.keys()) for topic, of_topic in sorted(by_topic.items())]


def groups_page(ledger: Ledger, flow: str) -> dict[str, Any]:
    """Where the last rounds saw the source's groups, and what became of each; bounded, and told where it is cut."""
    of_flow = ledger.flow(flow)
    offsets = of_flow.group_offsets()
    lags = {(row.group, row.topic, row.partition): row for row in ledger.flow_group_lags(flow)}
    keys = sorted(lags.keys() | {(row.group, row.topic, row.partition) for row in offsets})
    moved = {(row.group, row.topic, row.partition): row for row in offsets}
    return {
        "rows": [_group_row(key, moved.get(key), lags.get(key)) for key in keys[:MOST_ROWS]],
        "rows_in_all": len(keys),
        "synced_ms": of_flow.last_round("sync_group_offsets"),
        "checkpoints_ms": of_flow.last_round("emit_checkpoints"),
    }


def _group_row(key: tuple[str, str, int], offset: GroupOffset | None, lag: GroupLag | None) -> dict[str, Any]:
    group, topic, partition = key
    return {
        "group": group,
        "topic": topic,
        "partition": partition,
        "position": lag.position if lag else offset.position if offset else None,
        "lag": lag.lag if lag else None,
        "lag_ms": lag.lag_ms if lag else None,
        "again": lag.again if lag else None,
        "again_ms": lag.again_ms if lag else None,
        "remote_topic": offset.remote_topic if offset else None,
        "translated": offset.downstream if offset else None,
        "exact": offset.exact if offset else None,
        "on_target": offset.on_target if offset else None,
        "reason": offset.reason if offset else None,
        "seen_ms": max(row.time_ms for row in (offset, lag) if row is not None),
    }


def _topic(topic: str, rows: Sequence[PartitionRow], held: Any) -> dict[str, Any]:
    latencies = [row.latency_ms for row in rows if row.newest_ms >= 0]
    lagging = [row.newest_ms for row in rows if row.lag_records > 0]
    return {
        "topic": topic,
        "remote_topic": rows[0].remote_topic,
        "partitions": len(rows),
        "held": sum(1 for row in rows if (row.topic, row.partition) in held),
        "lag_records": sum(row.lag_records for row in rows),
        "oldest_ms": min((ms for ms in lagging if ms >= 0), default=None),
        "unknown": sum(1 for ms in lagging if ms < 0),
        "latency_least_ms": min(latencies, default=None),
        "latency_mean_ms": round(sum(latencies) / len(latencies)) if latencies else None,
        "latency_most_ms": max(
            (row.latency_most_ms or row.latency_ms for row in rows if row.newest_ms >= 0), default=None
        ),
        "records": sum(row.records for row in rows),
        "bytes": sum(row.bytes for row in rows),
        "verified_ms": max((row.verified_ms for row in rows if row.verified_ms >= 0), default=None),
    }


def _range(record: SegmentRecord, passed: bool) -> dict[str, Any]:
    return {
        "source_start": record.source_start,
        "source_end": record.source_end,
        "target_start": record.target_start,
        "target_end": record.target_end,
        "remote_topic": record.remote_topic,
        "copied": record.copied,
        "control": record.control,
        "aborted": record.aborted,
        "holes": record.holes,
        "lost": record.lost,
        "bytes": record.size,
        "runs": len(record.segments),
        "read_back": record.was_read_back,
        "verified": passed,
        "window": record.window,
        "slot": record.slot,
        "time_ms": record.time_ms,
        "digest": record.digest.hex(),
    }


def _is_passed(record: SegmentRecord, topic_id: Any, offset: int) -> bool:
    return record.source_topic_id == topic_id and record.source_end <= offset + 1


def _hold(hold: Hold) -> dict[str, Any]:
    return {"offset": hold.offset, "reason": hold.reason, "window": hold.window, "by": hold.by, "time_ms": hold.time_ms}


def _decision(each: Decision) -> dict[str, Any]:
    return {
        "time_ms": each.time_ms,
        "action": each.action.name.lower(),
        "offset": each.offset,
        "reason": each.reason,
        "by": each.by,
    }


def _reset(each: ResetRecord) -> dict[str, Any]:
    names = ("time_ms", "choice", "problem", "lost_first", "lost_end", "start", "by", "reason")
    return {name: getattr(each, name) for name in names}

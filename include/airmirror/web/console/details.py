"""The console's pages of a partition, of topics and of groups. Of the ledger alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from airmirror.ledger import GroupLag, GroupOffset, Ledger
from airmirror.ledger.database import reading
from airmirror.ledger.showing import partition_row, story, topics, verified_of
from airmirror.rows import row_of, rows_of
from airmirror.web.console.known import known

MOST_RANGES = 200
MOST_ROWS = 5_000  # of a page of groups


def partition_page(ledger: Ledger, flow: str, key: tuple[str, int], before: int | None) -> dict[str, Any] | None:
    """A partition's story: its ranges, the newest first, and all that was decided. None: the ledger knows nothing of it."""
    now = known(ledger.flow(flow), red_run="")
    with reading(ledger.engine) as connection:
        ranges = story(connection, flow, key, MOST_RANGES + 1, before)
        own = partition_row(connection, flow, key)
        verified = verified_of(connection, flow, key)
    if not ranges and not own and before is None:
        return None
    hold = now.holds.get(key)
    return {
        "topic": key[0],
        "partition": key[1],
        "numbers": asdict(own) if own else None,
        "verified": None if verified is None else row_of(verified, "offset target_end window time_ms"),
        "hold": None if hold is None else row_of(hold, "offset reason window by time_ms"),
        "decisions": rows_of(
            (each for each in now.decisions if (each.topic, each.partition) == key),
            "time_ms action offset reason by",
            action=lambda each: each.action.name.lower(),
        ),
        "resets": rows_of(
            (each for each in now.resets if (each.topic, each.partition) == key),
            "time_ms choice problem lost_first lost_end start by reason",
        ),
        "failing": [asdict(each) for each in now.failing if (each.topic, each.partition) == key],
        "ranges": rows_of(
            ranges[:MOST_RANGES],
            "source_start source_end target_start target_end remote_topic copied control aborted holes lost bytes=size "
            "runs read_back=was_read_back verified window slot time_ms digest",
            runs=lambda each: len(each.ranges),
            verified=lambda each: (
                verified is not None
                and each.source_topic_id == verified.source_topic_id
                and each.source_end <= verified.offset + 1
            ),
            digest=lambda each: each.digest.hex(),
        ),
        "more": len(ranges) > MOST_RANGES,
    }


def topics_page(ledger: Ledger, flow: str) -> list[dict[str, Any]]:
    """The flow's topics, by name, each the sums of its partitions; times in epoch milliseconds."""
    with reading(ledger.engine) as connection:
        found = topics(connection, flow)
    held = Counter(topic for topic, _ in ledger.flow(flow).holds())
    return [
        asdict(each) | {"held": held[each.topic], "verified_ms": each.verified_ms if each.verified_ms >= 0 else None}
        for each in found
    ]


def groups_page(ledger: Ledger, flow: str) -> dict[str, Any]:
    """Where the last runs saw the source's groups, and what became of each; bounded, and marked where it is cut."""
    of_flow = ledger.flow(flow)
    offsets = of_flow.group_offsets()
    lags = {(row.group, row.topic, row.partition): row for row in of_flow.group_lags()}
    keys = sorted(lags.keys() | {(row.group, row.topic, row.partition) for row in offsets})
    moved = {(row.group, row.topic, row.partition): row for row in offsets}
    return {
        "rows": [_group_row(key, moved.get(key), lags.get(key)) for key in keys[:MOST_ROWS]],
        "rows_in_all": len(keys),
        "synced_ms": of_flow.last_begun("sync_group_offsets"),
        "checkpoints_ms": of_flow.last_begun("emit_checkpoints"),
    }


def _group_row(key: tuple[str, str, int], offset: GroupOffset | None, lag: GroupLag | None) -> dict[str, Any]:
    group, topic, partition = key
    return {
        "group": group,
        "topic": topic,
        "partition": partition,
        "position": lag.position if lag else offset.position if offset else None,
        **row_of(lag, "lag lag_ms again again_ms"),
        **row_of(offset, "remote_topic translated=downstream exact on_target reason"),
        "seen_ms": max(row.time_ms for row in (offset, lag) if row is not None),
    }

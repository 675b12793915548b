"""The lags of the source's consumer groups in what a flow replicates, noted in the ledger to be shown as metrics.

The time of the next record to read is looked up in the flow's mappings, not in Kafka: it lies between the times of a
transaction's first and newest record, and is taken as evenly spread over its offsets (kafka-lag-exporter interpolates too).
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from airmirror.ledger import FlowLedger, GroupLag
from airmirror.ledger.metrics import LONGEST_MS
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.translation import Translated
from airmirror.partitions import TopicPartition, grouped
from airmirror.wire.mappings import MappingRecord


def note_group_lags(cluster: str, ledger: FlowLedger, rows: Sequence[GroupPosition]) -> None:
    """Note the lags of all positions whose partition's log is known; ``cluster`` is the alias of the groups' cluster."""
    ledger.note_group_lags(lags_of(cluster, rows, _times(ledger, rows), int(time.time() * 1000)))


def lags_of(
    cluster: str, rows: Iterable[GroupPosition], records: Mapping[TopicPartition, list[MappingRecord]], now_ms: int
) -> list[GroupLag]:
    """``records``: the mapping records that positions lie in, by topic and partition, in order."""
    found = []
    for row in rows:
        if row.source is None:
            continue
        position = max(row.committed.offset, row.source.start)  # what was deleted can't be read any more
        lag = max(0, row.source.end - row.committed.offset)
        next_ms = _time_of(records.get(row.key, []), position) if lag else now_ms
        lag_ms = None if next_ms is None else _age(next_ms, now_ms)
        again = row.found.again if isinstance(row.found, Translated) else None
        first_ms = _time_of(records.get(row.key, []), _first_again(row)) if again else now_ms
        found.append(
            GroupLag(
                row.group,
                *row.key,
                cluster=cluster,
                position=row.committed.offset,
                lag=lag,
                lag_ms=lag_ms,
                time_ms=now_ms,
                kind=row.kind,
                again=again,
                again_ms=None if again is None or first_ms is None else _age(first_ms, now_ms),
            )
        )
    return found


def _age(time_ms: int, now_ms: int) -> int:
    """Return how long ago a producer's time was, which may be any number: one that every database takes."""
    return max(0, min(now_ms - time_ms, LONGEST_MS))


def _times(ledger: FlowLedger, rows: Iterable[GroupPosition]) -> dict[TopicPartition, list[MappingRecord]]:
    newest = ledger.last_mappings()
    wanted = {
        (row.topic, row.partition, newest[row.key].source_topic_id, position)
        for row in rows
        if row.source is not None and row.key in newest
        for position in (max(row.committed.offset, row.source.start), _first_again(row))
        if position < row.source.end
    }
    found = grouped((each.key, each) for each in ledger.mappings_at(sorted(wanted, key=str), "source"))
    return {key: sorted(records, key=lambda record: record.source_start) for key, records in found.items()}


def _first_again(row: GroupPosition) -> int:
    """The first offset that the group would read again; its position where there is none."""
    return row.found.position if isinstance(row.found, Translated) else row.committed.offset


def _time_of(records: Sequence[MappingRecord], position: int) -> int | None:
    """Return when the first record at or after a position was made, in epoch milliseconds; None: not replicated yet."""
    number = bisect_right(records, position, key=lambda record: record.source_end)
    if number == len(records):
        return None
    record = records[number]
    if record.read_ms < 0 or record.max_timestamp < 0:
        return record.max_timestamp if record.max_timestamp >= 0 else None
    into = max(0, position - record.source_start) / (record.source_end - record.source_start)
    return round(record.min_timestamp + into * (record.max_timestamp - record.min_timestamp))

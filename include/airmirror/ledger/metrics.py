"""Numbers to be shown: cumulative counters and lags, one row a partition, and a flow's own. A scrape reads nothing else.

Counters are sums over the mappings up to the verified offset, added up as it moves, so that each mapping counts once
whatever happens between, also after it was pruned. A rebuilt ledger begins to count again.
``flows.measure`` leaves the numbers of a window and its gate here, ``windows.standing`` those of each partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from airmirror.ledger.database import Row, by_partition, delete, is_of, key_of, same, upsert
from airmirror.ledger.queries import mapping_of
from airmirror.ledger.tables import flow_metrics, mappings, newest, partition_metrics, verified
from airmirror.partitions import CopyFacts
from airmirror.wire.mappings import MappingRecord, Verified, decode

_FRESH: Row = {
    **dict.fromkeys(("remote_topic", "source_topic_id"), ""),
    **dict.fromkeys(("counted_end", "records", "bytes", "lag_records"), 0),
    **dict.fromkeys(("newest_end", "newest_ms", "latency_ms", "verified_ms", "high_watermark"), -1),
    **dict.fromkeys(("latency_most_ms", "age_ms", "age_most_ms", "verified_record_ms", "seen_ms"), None),
    **dict.fromkeys(("earlier_ms", "earlier_records", "earlier_bytes"), None),
}
LONGEST_MS = 2**53  # of an age: times of records are their producers'
EARLIER_MS = 60_000  # how old the counters are, at most, that a rate is computed from while something is verified


@dataclass(frozen=True)
class Standing(CopyFacts):
    """The position of a partition in source offsets: the next one to replicate, and the high watermark; -1 unknown.

    ``oldest_ms``: the timestamp of the oldest record of a partition that the window does not follow; None: not known.
    """

    position: int
    high_watermark: int
    oldest_ms: int | None = None


LONGEST_LABEL = 64  # characters: names of clusters come from topics of the source, and may be longer
SEEN = "seen"  # a gauge: when the high watermarks of the source were last read (epoch seconds)
MALFORMED = "malformed"  # a counter, by what the records should have been


@dataclass(frozen=True)
class PartitionMetrics(CopyFacts):
    """A partition's numbers. Times in epoch milliseconds, -1 where there is none.

    ``newest_ms`` is the timestamp of the newest record copied, ``latency_ms`` how old it was when it was committed, ``age_ms``
    when it was read; ``…_most_ms`` how old the oldest record of the same transaction was, None: not known. ``newest_end``
    is the source offset after the last committed one (-1: none was), ``counted_end`` that after the last verified one, and
    ``verified_record_ms`` the timestamp of the newest verified record, of a topic that is new while a window follows that of the
    oldest one until something of it is verified; none of them is later than when it was read. ``seen_ms`` is when
    ``high_watermark`` was read, where the flow's last window could not read it. ``earlier_records`` and ``earlier_bytes`` are
    what the counters were at ``earlier_ms``.
    """

    flow: str
    records: int
    bytes: int
    newest_ms: int
    latency_ms: int
    verified_ms: int
    high_watermark: int
    lag_records: int
    latency_most_ms: int | None = None
    age_ms: int | None = None
    age_most_ms: int | None = None
    newest_end: int = -1
    counted_end: int = 0
    verified_record_ms: int | None = None
    seen_ms: int | None = None
    earlier_ms: int | None = None
    earlier_records: int | None = None
    earlier_bytes: int | None = None


@dataclass(frozen=True)
class FlowMetric:
    """A number of a whole flow: a counter or gauge ``name``, of what ``label`` says."""

    flow: str
    name: str
    label: str
    value: float


def count_verified(connection: Connection, flow: str) -> None:
    """Add to each partition's counters what its verified offset has passed since the last call; note its newest record.

    Of what the flow replicates: whatever has a row by its standing.
    """
    own, both = partition_metrics.c, same(newest, partition_metrics)
    joined = newest.join(partition_metrics, both).outerjoin(verified, same(newest, verified))
    stale = sql.or_(
        own.counted_end != sql.func.coalesce(verified.c.source_offset + 1, 0),
        own.source_topic_id != verified.c.source_topic_id,
        own.newest_end != newest.c.source_end,
    )
    changed = (
        sql.select(
            newest.c.topic,
            newest.c.partition,
            newest.c.source_end,
            newest.c.key,
            newest.c.value,
            verified.c.source_topic_id,
            verified.c.source_offset,
            verified.c.key.label("verified_key"),
            verified.c.value.label("verified_value"),
        )
        .select_from(joined)
        .where(newest.c.flow == flow, stale)
    )
    found = connection.execute(changed).all()
    if not found:
        return
    before, sums = by_partition(connection, partition_metrics, flow), _sums(connection, flow)
    rows: list[Row] = []
    for item in found:
        key = (item.topic, item.partition)
        last = mapping_of(item)
        row = before[key] | {"remote_topic": last.remote_topic, "newest_end": item.source_end}
        if last.copied:
            row |= _ages(last)
        end = 0 if item.verified_key is None else item.source_offset + 1
        if row["counted_end"] > end:  # it was reset: of what was counted, this does not hold any more
            row |= {"counted_end": end, "verified_record_ms": None}
        if item.verified_key is not None:
            passed = decode(bytes(item.verified_key), bytes(item.verified_value))
            assert isinstance(passed, Verified)
            copied, size, newest_start = sums.get(key, (0, 0, None))
            if newest_start is not None:
                row["verified_record_ms"] = _time_of(connection, flow, passed, last, newest_start)
            after = {"records": row["records"] + copied, "bytes": row["bytes"] + size, "verified_ms": passed.time_ms}
            row |= _earlier(row, after) | after
            row |= {"source_topic_id": item.source_topic_id, "counted_end": end}
        rows.append(row)
    upsert(connection, partition_metrics, rows)


def _earlier(before: Row, now: Row) -> Row:
    """The counters of a rate: those ``before`` where what is kept is too old, the first ones where nothing is."""
    if before["earlier_ms"] is not None and now["verified_ms"] - before["earlier_ms"] < EARLIER_MS:
        return {}
    kept = before if before["verified_ms"] >= 0 else now
    return {"earlier_ms": kept["verified_ms"], "earlier_records": kept["records"], "earlier_bytes": kept["bytes"]}


def _time_of(connection: Connection, flow: str, passed: Verified, last: MappingRecord, start: int) -> int:
    """Return the newest record's timestamp of the mapping that begins at ``start``; ``last``: the partition's newest one."""
    if last.source_start == start and last.source_topic_id == passed.source_topic_id:
        return _newest_ms(last)
    own, of_partition = mappings.c, is_of(mappings, flow, (passed.topic, passed.partition))
    where = (of_partition, own.source_topic_id == str(passed.source_topic_id), own.source_start == start)
    return _newest_ms(mapping_of(connection.execute(sql.select(own.key, own.value).where(*where)).one()))


def _newest_ms(record: MappingRecord) -> int:
    """The timestamp of its newest record, but not a later one than when that was read: producers write any."""
    return min(record.max_timestamp, record.read_ms if record.read_ms >= 0 else record.time_ms)


def _ages(last: MappingRecord) -> Row:
    """Return the ages of the records of a transaction, within what every database and page can hold."""
    tells = last.read_ms >= 0
    ages = {
        "latency_ms": last.time_ms - last.max_timestamp,
        "latency_most_ms": last.time_ms - last.min_timestamp if tells else None,
        "age_ms": last.read_ms - last.max_timestamp if tells else None,
        "age_most_ms": last.read_ms - last.min_timestamp if tells else None,
    }
    shown = {name: None if age is None else max(-LONGEST_MS, min(age, LONGEST_MS)) for name, age in ages.items()}
    return {"newest_ms": _newest_ms(last)} | shown


def note_standings(connection: Connection, flow: str, standings: Sequence[Standing]) -> None:
    """Note the lags that are known. The rows of partitions that are not among ``standings`` are deleted.

    They are all of the flow's: what is not among them is mirrored no longer. Of what could not be seen, remember when it was.
    """
    before = by_partition(connection, partition_metrics, flow)
    seen = numbers_of(connection, flow).get((SEEN, ""))
    rows: list[Row] = []
    for standing in standings:
        key = (standing.topic, standing.partition)
        row = before.get(key)
        if standing.high_watermark < 0:
            if row is not None and row["seen_ms"] is None and seen is not None:
                rows.append(row | {"seen_ms": round(seen * 1000)})
            continue
        own = {
            "remote_topic": standing.remote_topic,
            "high_watermark": standing.high_watermark,
            "lag_records": max(0, standing.high_watermark - standing.position),
            "seen_ms": None,
        }
        if standing.oldest_ms is not None and (row or _FRESH)["verified_ms"] < 0:
            own["verified_record_ms"] = standing.oldest_ms
        if row is None or any(row[name] != value for name, value in own.items()):
            rows.append(_FRESH | (row or {}) | key_of(partition_metrics, flow, key) | own)
    upsert(connection, partition_metrics, rows)
    gone = before.keys() - {(standing.topic, standing.partition) for standing in standings}
    delete(connection, partition_metrics, [key_of(partition_metrics, flow, key) for key in gone])


def add(connection: Connection, flow: str, numbers: Mapping[tuple[str, str], float]) -> None:
    """Add to counters, by name and label."""
    before = numbers_of(connection, flow)
    sums = {key: before.get((key[0], key[1][:LONGEST_LABEL]), 0.0) + value for key, value in numbers.items()}
    put(connection, flow, sums)


def numbers_of(connection: Connection, flow: str) -> dict[tuple[str, str], float]:
    """The flow's own counters and gauges, by name and label."""
    own = flow_metrics.c
    rows = connection.execute(sql.select(own.name, own.label, own.value).where(own.flow == flow))
    return {(row.name, row.label): row.value for row in rows}


def put(connection: Connection, flow: str, numbers: Mapping[tuple[str, str], float]) -> None:
    """Set gauges, by name and label."""
    cut = {(name, label[:LONGEST_LABEL]): value for (name, label), value in numbers.items()}
    rows = [{"flow": flow, "name": name, "label": label, "value": value} for (name, label), value in cut.items()]
    upsert(connection, flow_metrics, rows)


def _sums(connection: Connection, flow: str) -> dict[tuple[str, int], tuple[int, int, int | None]]:
    """Records and bytes of mappings that are verified and not counted yet; where the last one with records begins."""
    own = partition_metrics.c
    counted = sql.case((own.source_topic_id == verified.c.source_topic_id, own.counted_end), else_=0)
    not_counted = sql.and_(
        same(verified, mappings),
        mappings.c.source_topic_id == verified.c.source_topic_id,
        mappings.c.source_start >= sql.func.coalesce(counted, 0),
        mappings.c.source_end <= verified.c.source_offset + 1,
    )
    joined = verified.outerjoin(partition_metrics, same(verified, partition_metrics)).join(mappings, not_counted)
    query = (
        sql.select(
            verified.c.topic,
            verified.c.partition,
            sql.func.sum(mappings.c.copied),
            sql.func.sum(mappings.c.bytes),
            sql.func.max(sql.case((mappings.c.copied_end.is_not(None), mappings.c.source_start))),
        )
        .select_from(joined)
        .where(verified.c.flow == flow)
        .group_by(verified.c.topic, verified.c.partition)
    )
    return {(row[0], row[1]): (int(row[2]), int(row[3]), row[4]) for row in connection.execute(query)}

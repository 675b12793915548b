"""The numbers of a flow over time: one row when a window ends or a gate has judged, a bounded number of them, for plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from airmirror.ledger.database import columns_of, upsert
from airmirror.ledger.recovery import complete_of
from airmirror.ledger.tables import partition_metrics, samples
from airmirror.partitions import grouped

MOST_KEPT = 20_000  # of a flow: a day of one every five seconds, two weeks of one a minute
LEAST_MS = 1_000  # from one sample to the next of a gate that judges meanwhile
PAUSE_MS = 60_000  # without a sample before a window, from which on it has one when it begins


@dataclass(frozen=True)
class FlowSample:
    """A flow's numbers at one moment, in epoch milliseconds.

    ``records`` and ``bytes`` are counters; ``lag_records`` and ``lag_ms`` None where only a gate judged; ``latency_ms`` is the
    mean, and ``latency_most_ms`` the longest time from a record's timestamp to its commit of what came since the sample before;
    ``verified_ms`` up to when all that the source had was verified (``recovery``), None: not known.
    """

    time_ms: int
    records: int
    bytes: int
    lag_records: int | None
    lag_ms: int | None
    latency_ms: int | None
    latency_most_ms: int | None
    verified_ms: int | None


def note(connection: Connection, flow: str, now: int, *, lags: bool, begun_ms: int | None = None) -> None:
    """Note the numbers of a flow as they stand; ``lags``: they were measured now. What a gate lets pass right after the sample of
    its window counts for that. ``begun_ms``: when the window began; before it nothing was copied since the last sample.
    """
    of_flow, own = samples.c.flow == flow, partition_metrics.c
    before = connection.execute(
        sql.select(samples.c.time_ms, samples.c.records, samples.c.bytes, samples.c.verified_ms)
        .where(of_flow)
        .order_by(samples.c.time_ms.desc())
        .limit(1)
    ).first()
    if before is not None and not lags and now - before.time_ms < LEAST_MS:
        passed = sql.select(*(sql.func.coalesce(sql.func.sum(each), 0) for each in (own.records, own.bytes)))
        records, size = connection.execute(passed.where(own.flow == flow)).one()
        new = {"records": int(records), "bytes": int(size), "verified_ms": complete_of(connection, [flow])[flow]}
        connection.execute(samples.update().where(of_flow, samples.c.time_ms == before.time_ms).values(new))
        return
    if before is not None and begun_ms is not None and begun_ms - before.time_ms > PAUSE_MS:
        not_seen = dict.fromkeys(("lag_records", "lag_ms", "latency_ms", "latency_most_ms"))
        upsert(connection, samples, [{"flow": flow, **before._mapping, "time_ms": begun_ms, **not_seen}])
    since = before.time_ms if before is not None else -1
    is_new = sql.and_(own.newest_ms >= 0, own.newest_ms + own.latency_ms > since)  # when it was committed
    lagging = sql.and_(own.lag_records > 0, own.newest_ms >= 0)
    row = connection.execute(
        sql.select(
            sql.func.coalesce(sql.func.sum(own.records), 0).label("records"),
            sql.func.coalesce(sql.func.sum(own.bytes), 0).label("bytes"),
            sql.func.coalesce(sql.func.sum(own.lag_records), 0).label("lag_records"),
            sql.func.min(sql.case((lagging, own.newest_ms))).label("oldest_ms"),
            sql.func.count(sql.case((sql.and_(own.lag_records > 0, own.newest_ms < 0), 1))).label("unknown"),
            sql.func.avg(sql.case((is_new, own.latency_ms))).label("latency"),
            sql.func.max(sql.case((is_new, sql.func.coalesce(own.latency_most_ms, own.latency_ms)))).label("most"),
        ).where(own.flow == flow)
    ).one()
    lag_ms = None if row.unknown else 0 if row.oldest_ms is None else max(0, now - int(row.oldest_ms))
    upsert(
        connection,
        samples,
        [
            {
                "flow": flow,
                "time_ms": now,
                "records": int(row.records),
                "bytes": int(row.bytes),
                "lag_records": int(row.lag_records) if lags else None,
                "lag_ms": lag_ms if lags else None,
                "latency_ms": None if row.latency is None else int(row.latency),
                "latency_most_ms": None if row.most is None else int(row.most),
                "verified_ms": complete_of(connection, [flow])[flow],
            }
        ],
    )
    times = sql.select(samples.c.time_ms).where(of_flow).order_by(samples.c.time_ms.desc())
    oldest = connection.scalar(times.offset(MOST_KEPT - 1).limit(1))
    if oldest is not None:
        connection.execute(samples.delete().where(of_flow, samples.c.time_ms < oldest))


def between(connection: Connection, flow: str, since: int, until: int, most: int) -> list[FlowSample]:
    """The samples of ``[since, until)``, by time: at most about ``most``, each the worst of its stretch of time.

    Counters are the largest of the stretch, lags and latencies the largest, ``verified_ms`` the earliest.
    """
    own, step = samples.c, max(1, (until - since) // most)
    bucket = own.time_ms - own.time_ms % step
    query = (
        sql.select(
            sql.func.max(own.time_ms),
            sql.func.max(own.records),
            sql.func.max(own.bytes),
            sql.func.max(own.lag_records),
            sql.func.max(own.lag_ms),
            sql.func.max(own.latency_ms),
            sql.func.max(own.latency_most_ms),
            sql.func.min(own.verified_ms),
        )
        .where(own.flow == flow, own.time_ms >= since, own.time_ms < until)
        .group_by(bucket)
        .order_by(sql.func.max(own.time_ms))
    )
    return [FlowSample(*row) for row in connection.execute(query)]


def latest(connection: Connection, flows: Sequence[str], since: int) -> dict[str, list[FlowSample]]:
    """Of each flow the first and the last sample since a time, for its rates now; one or none where there are no more."""
    own = samples.c
    ends = (
        sql.select(own.flow, sql.func.min(own.time_ms).label("first"), sql.func.max(own.time_ms).label("last"))
        .where(own.flow.in_(flows), own.time_ms >= since)
        .group_by(own.flow)
        .subquery()
    )
    columns = columns_of(samples, FlowSample)
    chosen = sql.and_(own.flow == ends.c.flow, sql.or_(own.time_ms == ends.c.first, own.time_ms == ends.c.last))
    rows = connection.execute(sql.select(own.flow, *columns).join(ends, chosen).order_by(own.time_ms))
    return grouped((flow, FlowSample(*row)) for flow, *row in rows)

"""The ledger: a database for all flows, and one flow's part of it: loaded from its internal topics, asked by all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from uuid import UUID

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from airmirror.errors import AirmirrorError
from airmirror.ledger import groups, loading, metrics, outcomes, schema
from airmirror.ledger.database import connect, reading, shown, upsert, writing
from airmirror.ledger.errors import LedgerBegunAnew
from airmirror.ledger.groups import GroupLag, GroupOffset
from airmirror.ledger.loading import ANEW, Entry, other_connector
from airmirror.ledger.metrics import FlowMetric, PartitionMetrics, Standing
from airmirror.ledger.outcomes import Failure, Place, WindowEnd
from airmirror.ledger.state import State
from airmirror.ledger.tables import (
    KEPT,
    LATER,
    OWN,
    checkpoints,
    control,
    metadata,
    newest,
    offset_syncs,
    progress,
    scanned,
    segments,
    verified,
)
from airmirror.naming.internal import is_progress_topic, is_segment_topic
from airmirror.wire.checkpoints import Checkpoint
from airmirror.wire.segments import (
    Claim,
    Decision,
    FlowIdentity,
    Hold,
    Record,
    ResetRecord,
    SegmentRecord,
    Verified,
    decode,
    held_by_decision,
)

Kind = TypeVar("Kind", Decision, FlowIdentity, Hold, ResetRecord)


@dataclass(frozen=True)
class WindowRow:
    """A window as its segments tell it; times in epoch milliseconds."""

    window: str
    first_ms: int
    last_ms: int
    partitions: int
    copied: int
    bytes: int


class Ledger:
    """A ledger at a SQLAlchemy URL, its schema made or migrated where it is behind.

    Raises LedgerUrlInvalid, LedgerUnavailable, LedgerTooNew.
    """

    def __init__(self, url: str) -> None:
        self.engine = connect(url)
        self.url = shown(self.engine.url)
        try:
            schema.bring_up_to_date(self.engine)
        except BaseException:
            self.close()
            raise

    def flow(self, name: str) -> FlowLedger:
        return FlowLedger(self, name)

    def partition_metrics(self) -> list[PartitionMetrics]:
        """Every flow's partitions, as they are shown."""
        with reading(self.engine) as connection:
            return metrics.partitions(connection)

    def holds(self) -> list[tuple[str, Hold]]:
        """Return the holds of every flow, each with its flow."""
        with reading(self.engine) as connection:
            flows = connection.scalars(
                sql.select(control.c.flow).where(control.c.kind.in_((Hold.kind, Decision.kind))).distinct()
            ).all()
        whole = sorted(flow for flow in flows if not flow.endswith(f" {ANEW}"))
        return [(flow, hold) for flow in whole for _, hold in sorted(self.flow(flow).holds().items())]

    def flow_metrics(self) -> list[FlowMetric]:
        """Every flow's own numbers, as they are shown."""
        with reading(self.engine) as connection:
            return metrics.flows(connection)

    def group_lags(self) -> list[GroupLag]:
        """Return the lags of the consumer groups of every flow's source when they were last read."""
        with reading(self.engine) as connection:
            return groups.latest_group_lags(connection)

    def close(self) -> None:
        self.engine.dispose()


class FlowLedger:
    """One flow's part of the ledger; what the engine calls its index."""

    def __init__(self, ledger: Ledger, flow: str) -> None:
        self._ledger = ledger
        self.flow = flow
        self.malformed = 0
        self._decoded: dict[tuple[str, str, int], tuple[bytes, Record]] = {}

    def part(self, name: str) -> FlowLedger:
        """A part of its own, for what the flow has read in another flow's internal topics."""
        return FlowLedger(self._ledger, f"{self.flow} {name}")

    def scanned(self, topic: str, topic_id: UUID) -> dict[int, int]:
        """The next offset to read, by partition; what was loaded from a topic of another id is forgotten."""
        with self._reading() as connection:
            rows = self._scanned(connection, topic)
        if all(row.topic_id == str(topic_id) for row in rows):
            return {row.partition: row.next_offset for row in rows}
        self.forget_topic(topic)
        return {}

    def last_read(self, topic: str) -> dict[int, tuple[int, int]]:
        """The last record read of a topic, by partition: its offset and its leader epoch, where that is known."""
        with self._reading() as connection:
            rows = self._scanned(connection, topic)
        return {row.partition: (row.last_offset, row.last_epoch) for row in rows if row.last_epoch is not None}

    def forget_topic(self, topic: str) -> None:
        """Delete what was loaded from a topic, which is then read again."""
        with self._writing() as connection:
            for table in _tables_of(topic):
                connection.execute(table.delete().where(table.c.flow == self.flow))
            connection.execute(scanned.delete().where(scanned.c.flow == self.flow, scanned.c.topic == topic))

    def state(self) -> State:
        """Return the contents of the flow's two internal topics, read in one transaction."""
        with self._reading() as connection:
            segments, (own, others) = self._segments(connection), self._progress(connection)
            return State(
                segments=segments,
                progress={key: offset for key, offset in others.items() if key not in segments} | own,
                verified=self._verified(connection),
                holds=self._holds(connection),
                forgotten=_forgotten(self._records(connection, ResetRecord), segments),
                scanned=self._all_scanned(connection),
            )

    def load_segments(
        self,
        topic: str,
        topic_id: UUID,
        entries: Sequence[Entry],
        at: Mapping[int, int],
        since: Mapping[int, int] | None = None,
    ) -> None:
        """Take in records of the segment topic, in log order; malformed ones are counted and logged.

        ``at``: the next offset to read after them, by partition; ``since``: the offset they were read from. What was
        loaded already is not loaded again. Raises LedgerBegunAnew where offsets between would be missing.
        """
        with self._writing() as connection:
            new = self._advance(
                connection=connection, topic=topic, topic_id=topic_id, entries=entries, at=at, since=since
            )
            self._count(connection, "segments", loading.load_segments(connection, self.flow, topic, new))

    def load_progress(
        self,
        topic: str,
        topic_id: UUID,
        entries: Sequence[Entry],
        at: Mapping[int, int],
        cluster: str,
        since: Mapping[int, int] | None = None,
    ) -> None:
        """Take in records of ``mm2-offsets`` of a source cluster, like ``load_segments``."""
        with self._writing() as connection:
            new = self._advance(
                connection=connection, topic=topic, topic_id=topic_id, entries=entries, at=at, since=since
            )
            self._count(connection, "progress", loading.load_progress(connection, self.flow, topic, new, cluster))

    def load_checkpoints(
        self,
        topic: str,
        topic_id: UUID,
        entries: Sequence[Entry],
        at: Mapping[int, int],
        since: Mapping[int, int] | None = None,
    ) -> None:
        """Take in records of the checkpoints topic, like ``load_segments``."""
        with self._writing() as connection:
            new = self._advance(
                connection=connection, topic=topic, topic_id=topic_id, entries=entries, at=at, since=since
            )
            self._count(connection, "checkpoints", loading.load_checkpoints(connection, self.flow, topic, new))

    def load_offset_syncs(
        self,
        topic: str,
        topic_id: UUID,
        entries: Sequence[Entry],
        at: Mapping[int, int],
        since: Mapping[int, int] | None = None,
    ) -> None:
        """Take in records of the offset-syncs topic, like ``load_segments``."""
        with self._writing() as connection:
            new = self._advance(
                connection=connection, topic=topic, topic_id=topic_id, entries=entries, at=at, since=since
            )
            self._count(connection, "offset_syncs", loading.load_offset_syncs(connection, self.flow, topic, new))

    def progress(self) -> dict[tuple[str, int], int]:
        """The last source offset that MirrorMaker 2's topic says was copied, by topic and partition."""
        with self._reading() as connection:
            own, others = self._progress(connection)
        return others | own

    def positions(self) -> dict[tuple[str, int], int]:
        """The first source offset that is not accounted for, by topic and partition."""
        return self.state().positions

    def claims(self) -> list[tuple[int, int, Claim]]:
        """(offset, append time, claim) in log order."""
        with self._reading() as connection:
            rows = self._control(connection, Claim.kind)
        return [(row.log_offset, row.timestamp, record) for row, record in rows if isinstance(record, Claim)]

    def verified(self) -> dict[tuple[str, int], Verified]:
        """The verified offset's record (invariant F), by topic and partition."""
        with self._reading() as connection:
            return self._verified(connection)

    def holds(self) -> dict[tuple[str, int], Hold]:
        """Return the holds by topic and partition: the gate's, unless an operator's latest decision replaces it."""
        with self._reading() as connection:
            return self._holds(connection)

    def decisions(self) -> list[Decision]:
        """Return the decisions of operators, in log order."""
        with self._reading() as connection:
            return self._records(connection, Decision)

    def resets(self) -> list[ResetRecord]:
        """Return the decisions of ``airmirror reset``, in log order."""
        with self._reading() as connection:
            return self._records(connection, ResetRecord)

    def remote_topics(self) -> dict[str, str]:
        """Return the remote topics that an operator has chosen instead of the policy's, by source topic."""
        decided: dict[str, bool] = {}
        for reset in self.resets():
            if reset.choice in ("new-topic", "forget"):
                decided[reset.topic] = reset.choice == "new-topic"
        if not any(decided.values()):
            return {}
        return {topic: last.remote_topic for (topic, _), last in self.last_segments().items() if decided.get(topic)}

    def identity(self) -> FlowIdentity | None:
        with self._reading() as connection:
            found = self._records(connection, FlowIdentity)
        return found[-1] if found else None

    def last_segments(self) -> dict[tuple[str, int], SegmentRecord]:
        """The newest segment record, by topic and partition: that of the largest source end."""
        with self._reading() as connection:
            return self._segments(connection)

    def segments(
        self, topic: str, partition: int, source_topic_id: UUID | None = None, start: int = 0, end: int | None = None
    ) -> Iterator[SegmentRecord]:
        """Segment records that overlap source offsets ``[start, end)``, by source offset."""
        query = sql.select(segments).where(
            segments.c.flow == self.flow,
            segments.c.topic == topic,
            segments.c.partition == partition,
            segments.c.source_end > start,
        )
        if source_topic_id is not None:
            query = query.where(segments.c.source_topic_id == str(source_topic_id))
        if end is not None:
            query = query.where(segments.c.source_start < end)
        for row in self._all(query.order_by(segments.c.source_start)):
            yield _segment(row)

    def unverified(self) -> list[SegmentRecord]:
        """Segment records past their partition's verified offset, by topic, partition and source offset."""
        # What was never verified is past -1, so that a first range without records is among it.
        boundary = sql.func.coalesce(verified.c.source_offset + 1, -1)
        same = ("flow", "topic", "partition", "source_topic_id")
        past = sql.and_(_same(newest, segments, *same), segments.c.source_end > boundary)
        # An outer join, or SQLite begins with all segments of the flow.
        joined = newest.outerjoin(verified, _same(newest, verified, *same)).outerjoin(segments, past)
        query = sql.select(segments).select_from(joined)
        rows = self._all(query.where(newest.c.flow == self.flow, newest.c.source_end > boundary))
        return _in_order([row for row in rows if row.key is not None])

    def of_window(self, window: str) -> list[SegmentRecord]:
        """Return the segment records of one window, by topic, partition and source offset."""
        return _in_order(
            self._all(sql.select(segments).where(segments.c.flow == self.flow, segments.c.window == window))
        )

    def windows(self, limit: int = 20) -> list[WindowRow]:
        """The latest windows that committed anything, the newest first."""
        of_flow = segments.c.flow == self.flow
        # From name to name through the index: the cost is that of the windows, not of all their segments.
        names = sql.select(sql.func.min(segments.c.window).label("window")).where(of_flow).cte(recursive=True)
        after = sql.select(sql.func.min(segments.c.window)).where(of_flow, segments.c.window > names.c.window)
        names = names.union_all(sql.select(after.scalar_subquery()).where(names.c.window.is_not(None)))
        last = sql.select(sql.func.max(segments.c.time_ms)).where(of_flow, segments.c.window == names.c.window)
        latest = sql.select(names.c.window).where(names.c.window.is_not(None)).order_by(last.scalar_subquery().desc())
        key = segments.c.topic + sql.literal("-") + sql.cast(segments.c.partition, sql.String)
        counts = (
            sql.select(
                segments.c.window,
                sql.func.min(segments.c.time_ms),
                sql.func.max(segments.c.time_ms),
                sql.func.count(sql.distinct(key)),
                sql.func.sum(segments.c.copied),
                sql.func.sum(segments.c.bytes),
            )
            .group_by(segments.c.window)
            .order_by(sql.func.max(segments.c.time_ms).desc())
        )
        with self._reading() as connection:
            found = connection.scalars(latest.limit(limit)).all()
            rows = connection.execute(counts.where(of_flow, segments.c.window.in_(found))).all()
        return [WindowRow(row[0], *(int(number) for number in row[1:])) for row in rows]

    def prunable(self, before_ms: int) -> list[bytes]:
        """Keys of segment records older than a time that are verified, or of an earlier topic; never a partition's newest.

        Of each source topic those before the first that is kept, whatever the clocks that made their times: no gap comes of it.
        """
        of_this = newest.c.source_topic_id == segments.c.source_topic_id
        is_newest = sql.and_(of_this, newest.c.source_start == segments.c.source_start)
        is_unverified = sql.or_(
            verified.c.source_offset.is_(None),
            verified.c.source_topic_id != segments.c.source_topic_id,
            segments.c.source_end > verified.c.source_offset + 1,
        )
        is_kept = sql.or_(segments.c.time_ms >= before_ms, is_newest, sql.and_(of_this, is_unverified))
        log = (segments.c.topic, segments.c.partition, segments.c.source_topic_id)
        same = ("flow", "topic", "partition")
        in_order = (
            sql.select(
                segments.c.key,
                segments.c.log_offset,
                sql.func.max(sql.case((is_kept, 1), else_=0))
                .over(partition_by=log, order_by=segments.c.source_start)
                .label("kept"),
            )
            .select_from(
                segments.join(newest, _same(segments, newest, *same)).outerjoin(
                    verified, _same(segments, verified, *same)
                )
            )
            .where(segments.c.flow == self.flow)
            .subquery()
        )
        query = sql.select(in_order.c.key).where(in_order.c.kept == 0).order_by(in_order.c.log_offset)
        return [bytes(row.key) for row in self._all(query)]

    def count_verified(self) -> None:
        """Add what the verified offsets have passed since the last call to the partitions' counters."""
        with self._writing() as connection:
            metrics.count_verified(connection, self.flow)

    def note_standings(self, standings: Sequence[Standing]) -> None:
        """Note the lags of all of the flow's partitions; what is shown of others goes."""
        with self._writing() as connection:
            metrics.note_standings(connection, self.flow, standings)

    def note(
        self, counters: Mapping[tuple[str, str], float], gauges: Mapping[tuple[str, str], float] | None = None
    ) -> None:
        """Add to the flow's own counters and set its gauges, by name and label."""
        with self._writing() as connection:
            metrics.add(connection, self.flow, counters)
            metrics.put(connection, self.flow, gauges or {})

    def numbers(self) -> dict[tuple[str, str], float]:
        """The flow's own counters and gauges, by name and label."""
        with self._reading() as connection:
            return metrics.numbers_of(connection, self.flow)

    def note_window(
        self,
        window: str,
        errors: Mapping[Place, AirmirrorError],
        passed: Callable[[Place], bool],
        *,
        idle: bool = False,
    ) -> None:
        """Note what is wrong after a window, by place, and how it ended; ``passed`` tells what of what was wrong is right now.

        ``idle``: it had nothing to do, and is not among the last windows.
        """
        now = int(time.time() * 1000)
        with self._writing() as connection:
            outcomes.note_failures(connection, self.flow, window, errors, passed, now=now)
            if not idle:
                outcomes.note_end(connection, self.flow, window, errors, now=now)

    def failures(self) -> list[Failure]:
        """Return the failures of every window since, by topic and partition."""
        with self._reading() as connection:
            return outcomes.failures_of(connection, self.flow)

    def window_ends(self) -> dict[str, WindowEnd]:
        """Return the ends of the last windows that did something, by window."""
        with self._reading() as connection:
            return outcomes.ends_of(connection, self.flow)

    def beside(self, flow: str) -> FlowLedger:
        """Another flow's part of the same ledger."""
        return self._ledger.flow(flow)

    def first_segments(self, partitions: Sequence[groups.Partition]) -> list[SegmentRecord]:
        """The first segment record of each partition (topic, partition, source topic id)."""
        with self._reading() as connection:
            return groups.first_segments(connection, self.flow, partitions)

    def segments_at(
        self, positions: Sequence[groups.Position], side: Literal["source", "target"]
    ) -> list[SegmentRecord]:
        """For each position of a partition the first segment record with a copied record at or after it."""
        with self._reading() as connection:
            return groups.segments_at(connection, self.flow, positions, side)

    def segments_around(
        self, positions: Sequence[groups.Position], side: Literal["source", "target"]
    ) -> list[SegmentRecord]:
        """Return, by source offset, all segment records from the last copied record before each position to the next one."""
        with self._reading() as connection:
            return groups.segments_around(connection, self.flow, positions, side)

    def checkpoints(self) -> dict[tuple[str, str, int], Checkpoint]:
        """The last checkpoint by group, the target's topic, and partition."""
        with self._reading() as connection:
            return groups.all_checkpoints(connection, self.flow)

    def offset_syncs(self) -> dict[tuple[str, int], int]:
        """The upstream offset of the last offset sync, by the source's topic and partition."""
        with self._reading() as connection:
            return groups.all_offset_syncs(connection, self.flow)

    def group_offsets(self) -> list[GroupOffset]:
        """Return the rows of the last round of sync_group_offsets, by group, topic and partition."""
        with self._reading() as connection:
            return groups.all_group_offsets(connection, self.flow)

    def note_group_offsets(self, rows: Sequence[GroupOffset]) -> None:
        """Replace the last round's rows with those of a new round."""
        with self._writing() as connection:
            groups.replace_group_offsets(connection, self.flow, rows)

    def note_group_lags(self, rows: Sequence[GroupLag]) -> None:
        """Replace the lags of the source's groups."""
        with self._writing() as connection:
            groups.replace_group_lags(connection, self.flow, rows)

    def last_round(self, task: str) -> int | None:
        """Return when a task with its own interval was last done, in epoch milliseconds."""
        with self._reading() as connection:
            return groups.last_round(connection, self.flow, task)

    def note_round(self, task: str) -> None:
        with self._writing() as connection:
            groups.note_round(connection, self.flow, task)

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything that was read from the flow's own topics, in order: what a rebuilt ledger must be equal to."""
        found = {}
        for table in (table for table in metadata.sorted_tables if table not in (*OWN, *LATER)):
            rows = self._all(sql.select(table).where(table.c.flow == self.flow).order_by(*table.primary_key.columns))
            found[table.name] = [tuple(row) for row in rows if table is not scanned or _is_own(row.topic)]
        return found

    def forget(self) -> None:
        """Delete everything of this flow."""
        with self._writing() as connection:
            for table in metadata.sorted_tables:
                connection.execute(table.delete().where(table.c.flow == self.flow))

    def anew(self) -> FlowLedger:
        """An empty part in which the flow is read again; ``replace_by`` puts it in place."""
        beside = self.part(ANEW)
        beside.forget()
        return beside

    def replace_by(self, beside: FlowLedger) -> bool:
        """Have what another part holds in the place of everything of this flow, at once; False where this one has read
        more of the flow's two topics meanwhile, and nothing is replaced."""
        with self._writing() as connection:
            read, own = beside._all_scanned(connection), self._all_scanned(connection)
            same = {topic: at for topic, at in own.items() if topic in read and at[0] == read[topic][0]}
            if not State(scanned=read).reaches({topic: at for topic, at in same.items() if _is_own(topic)}):
                return False
            for table in (table for table in metadata.sorted_tables if table not in KEPT):
                connection.execute(table.delete().where(table.c.flow == self.flow))
                connection.execute(table.update().where(table.c.flow == beside.flow).values(flow=self.flow))
        return True

    def _progress(self, connection: Connection) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]]:
        """Under MirrorMaker 2's own name of the connector, and under others."""
        rows = connection.execute(sql.select(progress).where(progress.c.flow == self.flow)).all()
        own = {(row.topic, row.partition): row.source_offset for row in rows if row.partition >= 0}
        others = {(row.topic, other_connector(row.partition)): row.source_offset for row in rows if row.partition < 0}
        return own, others

    def _segments(self, connection: Connection) -> dict[tuple[str, int], SegmentRecord]:
        records = self._newest(connection, newest)
        return {key: record for key, record in records.items() if isinstance(record, SegmentRecord)}

    def _verified(self, connection: Connection) -> dict[tuple[str, int], Verified]:
        records = self._newest(connection, verified)
        return {key: record for key, record in records.items() if isinstance(record, Verified)}

    def _holds(self, connection: Connection) -> dict[tuple[str, int], Hold]:
        held = {(record.topic, record.partition): record for record in self._records(connection, Hold)}
        return held | held_by_decision(self._records(connection, Decision))

    def _newest(self, connection: Connection, table: sql.Table) -> dict[tuple[str, int], Record]:
        """The records of a table that has one a partition. A window asks several times: each is decoded once."""
        found: dict[tuple[str, int], Record] = {}
        for row in connection.execute(sql.select(table).where(table.c.flow == self.flow)):
            key, content = (row.topic, row.partition), bytes(row.key) + bytes(row.value)
            before = self._decoded.get((table.name, *key))
            if before is None or before[0] != content:
                before = self._decoded[(table.name, *key)] = (content, _record(row))
            found[key] = before[1]
        return found

    def _records(self, connection: Connection, kind: type[Kind]) -> list[Kind]:
        return [record for _, record in self._control(connection, kind.kind) if isinstance(record, kind)]

    def _control(self, connection: Connection, kind: int) -> list[tuple[Any, Record]]:
        query = sql.select(control).where(control.c.flow == self.flow, control.c.kind == kind)
        return [(row, _record(row)) for row in connection.execute(query.order_by(control.c.log_offset))]

    def _count(self, connection: Connection, kind: str, malformed: int) -> None:
        self.malformed += malformed
        if malformed and " " not in self.flow:  # a flow's own topics, not a part's
            metrics.add(connection, self.flow, {(metrics.MALFORMED, kind): float(malformed)})

    def _advance(
        self,
        connection: Connection,
        topic: str,
        topic_id: UUID,
        entries: Sequence[Entry],
        at: Mapping[int, int],
        since: Mapping[int, int] | None,
    ) -> list[Entry]:
        """Note how far the topic is read now; the entries that were not loaded before."""
        rows = self._scanned(connection, topic)
        known = {row.partition: row.next_offset for row in rows}
        anew = any(row.topic_id != str(topic_id) for row in rows)
        if anew or any(known.get(number, 0) < offset for number, offset in (since or {}).items()):
            raise LedgerBegunAnew(self.flow, topic)
        forward = {number: offset for number, offset in at.items() if offset > known.get(number, -1)}
        last = {row.partition: (row.last_offset, row.last_epoch) for row in rows}
        last |= {entry.partition: (entry.offset, entry.epoch) for entry in entries if entry.epoch >= 0}
        of_topic = {"flow": self.flow, "topic": topic, "topic_id": str(topic_id)}
        upsert(
            connection,
            scanned,
            [
                of_topic
                | {"partition": number, "next_offset": end}
                | dict(zip(("last_offset", "last_epoch"), last.get(number, (None, None)), strict=True))
                for number, end in forward.items()
            ],
        )
        return [entry for entry in entries if entry.offset >= known.get(entry.partition, 0)]

    def _scanned(self, connection: Connection, topic: str) -> Sequence[Any]:
        return connection.execute(
            sql.select(scanned).where(scanned.c.flow == self.flow, scanned.c.topic == topic)
        ).all()

    def _all_scanned(self, connection: Connection) -> dict[str, tuple[UUID, dict[int, int]]]:
        found: dict[str, tuple[UUID, dict[int, int]]] = {}
        for row in connection.execute(sql.select(scanned).where(scanned.c.flow == self.flow)):
            found.setdefault(row.topic, (UUID(row.topic_id), {}))[1][row.partition] = row.next_offset
        return found

    def _all(self, query: Any) -> Sequence[Any]:
        with self._reading() as connection:
            return connection.execute(query).all()

    def _reading(self) -> AbstractContextManager[Connection]:
        return reading(self._ledger.engine)

    def _writing(self) -> AbstractContextManager[Connection]:
        return writing(self._ledger.engine, self.flow)


def _forgotten(
    resets: Sequence[ResetRecord], last: Mapping[tuple[str, int], SegmentRecord]
) -> frozenset[tuple[str, int]]:
    """The partitions of which the last that was decided is to forget them, and nothing was copied since."""
    decided = {(reset.topic, reset.partition): reset for reset in resets}
    return frozenset(
        key
        for key, reset in decided.items()
        if reset.choice == "forget" and (key not in last or last[key].time_ms <= reset.time_ms)
    )


def _tables_of(topic: str) -> tuple[sql.Table, ...]:
    """The tables that are read from an internal topic: segments, ``mm2-offsets``, ``mm2-offset-syncs``, or checkpoints."""
    if is_progress_topic(topic):
        return (progress,)
    if topic.startswith("mm2-offset-syncs"):
        return (offset_syncs,)
    return (segments, newest, verified, control) if is_segment_topic(topic) else (checkpoints,)


def _is_own(topic: str) -> bool:
    """Return whether a topic is one of the two that hold all that a flow must remember."""
    return is_segment_topic(topic) or is_progress_topic(topic)


def _same(one: sql.Table, other: sql.Table, *columns: str) -> sql.ColumnElement[bool]:
    return sql.and_(*(one.c[column] == other.c[column] for column in columns))


def _record(row: Any) -> Record:
    return decode(bytes(row.key), bytes(row.value))


def _segment(row: Any) -> SegmentRecord:
    record = _record(row)
    assert isinstance(record, SegmentRecord)
    return record


def _in_order(rows: Sequence[Any]) -> list[SegmentRecord]:
    """Return records by topic, partition and source offset; not sorted by the database, whose collation may differ."""
    return [_segment(row) for row in sorted(rows, key=lambda row: (row.topic, row.partition, row.source_start))]

"""Loading records of the internal topics into the ledger, and asking it what they say."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol
from uuid import UUID

import sqlalchemy as sql
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import SQLAlchemyError
from tenacity import Retrying, stop_after_attempt, wait_random

from airmirror.errors import AirmirrorError
from airmirror.ledger.tables import control, metadata, newest, progress, scanned, segments
from airmirror.wire.mirrormaker import decode_source_offset
from airmirror.wire.primitives import MalformedRecord
from airmirror.wire.segments import Claim, FlowIdentity, Hold, Record, SegmentRecord, Tombstone, Verified, decode

log = logging.getLogger(__name__)

Row = dict[str, Any]


class Entry(Protocol):
    """A record of an internal topic, as it was read."""

    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


@dataclass(eq=False)
class LedgerUnavailable(AirmirrorError):
    """The ledger's database does not answer. ``url`` is without its password."""

    transient: ClassVar[bool] = True

    url: str
    reason: str

    def __str__(self) -> str:
        return f"the ledger at {self.url} can't be used: {self.reason}"


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
    """A ledger at a SQLAlchemy URL, its tables made when they are missing. Raises LedgerUnavailable."""

    def __init__(self, url: str) -> None:
        self.url = make_url(url).render_as_string(hide_password=True)
        arguments = {"timeout": 60} if url.startswith("sqlite") else {}
        try:
            self.engine = sql.create_engine(url, connect_args=arguments)
            if self.engine.dialect.name == "sqlite":
                sql.event.listen(self.engine, "connect", _write_ahead)
            # Another process may be making the tables at the same moment: then they are there the next time.
            for attempt in Retrying(stop=stop_after_attempt(5), wait=wait_random(0, 0.1), reraise=True):
                with attempt, self.engine.begin() as connection:
                    metadata.create_all(connection)
        except SQLAlchemyError as error:
            raise LedgerUnavailable(self.url, str(error.__cause__ or error)) from error

    def flow(self, name: str) -> FlowLedger:
        return FlowLedger(self, name)

    def close(self) -> None:
        self.engine.dispose()


def _write_ahead(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")  # what is lost is read again
    cursor.close()


class FlowLedger:
    """One flow's part of the ledger; what the engine calls its index."""

    def __init__(self, ledger: Ledger, flow: str) -> None:
        self._ledger = ledger
        self.flow = flow
        self.malformed = 0

    def scanned(self, topic: str, topic_id: UUID) -> dict[int, int]:
        """The next offset to read, by partition; what was loaded from a topic of another id is forgotten."""
        with self._begin() as connection:
            query = sql.select(scanned).where(scanned.c.flow == self.flow, scanned.c.topic == topic)
            rows = connection.execute(query).all()
            if any(row.topic_id != str(topic_id) for row in rows):
                of_progress = topic.startswith("mm2-offsets.")
                for table in (progress,) if of_progress else (segments, newest, control):
                    connection.execute(table.delete().where(table.c.flow == self.flow))
                connection.execute(scanned.delete().where(scanned.c.flow == self.flow, scanned.c.topic == topic))
                return {}
            return {row.partition: row.next_offset for row in rows}

    def load_segments(self, topic: str, topic_id: UUID, entries: Sequence[Entry], at: Mapping[int, int]) -> None:
        """Take in records of the segment topic, in log order; malformed ones are counted and logged."""
        with self._begin() as connection:
            segment_rows: dict[tuple[Any, ...], Row] = {}
            newest_rows: dict[tuple[str, int], Row] = {}
            for entry in entries:
                key, value = entry.key or b"", entry.value
                try:
                    record = decode(key, value)
                except MalformedRecord as error:
                    self._skip(topic, entry, error)
                    continue
                if isinstance(record, SegmentRecord):
                    row = _segment_row(self.flow, entry.offset, key, value or b"", record)
                    identity = (record.topic, record.partition, record.source_topic_id, record.source_start)
                    segment_rows[identity] = row
                    newest_rows[(record.topic, record.partition)] = row
                elif isinstance(record, Tombstone) and record.kind == SegmentRecord.kind:
                    segment_rows.pop((record.key[1], record.key[2], record.key[0], record.key[3]), None)
                    self._delete_segment(connection, record)
                else:
                    self._load_control(connection, entry, key, record)
            _upsert(connection, segments, list(segment_rows.values()))
            columns = {column.name for column in newest.columns}
            _upsert(connection, newest, [{k: row[k] for k in columns} for row in newest_rows.values()])
            self._scanned(connection, topic, topic_id, at)

    def load_progress(
        self, topic: str, topic_id: UUID, entries: Sequence[Entry], at: Mapping[int, int], cluster: str
    ) -> None:
        """Take in records of ``mm2-offsets``, in log order."""
        with self._begin() as connection:
            rows: dict[tuple[str, int], Row | None] = {}
            for entry in entries:
                try:
                    found = decode_source_offset(entry.key or b"", entry.value)
                except MalformedRecord as error:
                    self._skip(topic, entry, error)
                    continue
                if found is None or found.cluster != cluster:
                    continue
                row = {"flow": self.flow, "topic": found.topic, "partition": found.partition}
                rows[(found.topic, found.partition)] = (
                    None if found.offset is None else row | {"source_offset": found.offset}
                )
            for (name, number), row_or_none in rows.items():
                if row_or_none is None:
                    connection.execute(
                        progress.delete().where(
                            progress.c.flow == self.flow, progress.c.topic == name, progress.c.partition == number
                        )
                    )
            _upsert(connection, progress, [row for row in rows.values() if row is not None])
            self._scanned(connection, topic, topic_id, at)

    def progress(self) -> dict[tuple[str, int], int]:
        """The last accounted source offset, by topic and partition."""
        rows = self._all(sql.select(progress).where(progress.c.flow == self.flow))
        return {(row.topic, row.partition): row.source_offset for row in rows}

    def claims(self) -> list[tuple[int, int, Claim]]:
        """(offset, append time, claim) in log order."""
        rows = self._control(Claim.kind)
        return [(row.log_offset, row.timestamp, record) for row, record in rows if isinstance(record, Claim)]

    def verified(self) -> dict[tuple[str, int], Verified]:
        records = [record for _, record in self._control(Verified.kind)]
        return {(record.topic, record.partition): record for record in records if isinstance(record, Verified)}

    def holds(self) -> dict[tuple[str, int], Hold]:
        records = [record for _, record in self._control(Hold.kind)]
        return {(record.topic, record.partition): record for record in records if isinstance(record, Hold)}

    def identity(self) -> FlowIdentity | None:
        found = [record for _, record in self._control(FlowIdentity.kind) if isinstance(record, FlowIdentity)]
        return found[-1] if found else None

    def last_segments(self) -> dict[tuple[str, int], SegmentRecord]:
        """The newest segment record in log order, by topic and partition."""
        rows = self._all(sql.select(newest).where(newest.c.flow == self.flow))
        return {(row.topic, row.partition): _segment(row) for row in rows}

    def segments(
        self, topic: str, partition: int, source_topic_id: UUID | None = None, start: int = 0, end: int | None = None
    ) -> Iterator[SegmentRecord]:
        """Segment records that overlap source offsets ``[start, end)``, by source offset."""
        query = sql.select(segments).where(
            segments.c.flow == self.flow, segments.c.topic == topic, segments.c.partition == partition,
            segments.c.source_end > start,
        )  # fmt: skip
        if source_topic_id is not None:
            query = query.where(segments.c.source_topic_id == str(source_topic_id))
        if end is not None:
            query = query.where(segments.c.source_start < end)
        for row in self._all(query.order_by(segments.c.source_start)):
            yield _segment(row)

    def unverified(self) -> list[SegmentRecord]:
        """Segment records past their partition's verified offset, by topic, partition and source offset."""
        verified = self.verified()
        found: list[SegmentRecord] = []
        for (topic, partition), last in sorted(self.last_segments().items()):
            passed = verified.get((topic, partition))
            same = passed is not None and passed.source_topic_id == last.source_topic_id
            start = passed.offset + 1 if passed and same else 0
            if start < last.source_end:
                found.extend(self.segments(topic, partition, last.source_topic_id, start))
            elif last.source_end == last.source_start and not same:
                found.append(last)
        return found

    def of_window(self, window: str) -> list[SegmentRecord]:
        """What one window has committed, by topic, partition and source offset."""
        query = sql.select(segments).where(segments.c.flow == self.flow, segments.c.window == window)
        rows = self._all(query.order_by(segments.c.topic, segments.c.partition, segments.c.source_start))
        return [_segment(row) for row in rows]

    def windows(self, limit: int = 20) -> list[WindowRow]:
        """The latest windows that committed anything, the newest first."""
        last = sql.func.max(segments.c.time_ms)
        key = segments.c.topic + sql.literal("-") + sql.cast(segments.c.partition, sql.String)
        query = (
            sql.select(
                segments.c.window, sql.func.min(segments.c.time_ms), last, sql.func.count(sql.distinct(key)),
                sql.func.sum(segments.c.copied), sql.func.sum(segments.c.bytes),
            )
            .where(segments.c.flow == self.flow)
            .group_by(segments.c.window)
            .order_by(last.desc())
            .limit(limit)
        )  # fmt: skip
        return [WindowRow(row[0], *(int(number) for number in row[1:])) for row in self._all(query)]

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything, in order: what a rebuilt ledger must be equal to."""
        found = {}
        for table in metadata.sorted_tables:
            rows = self._all(sql.select(table).where(table.c.flow == self.flow).order_by(*table.primary_key.columns))
            found[table.name] = [tuple(row) for row in rows]
        return found

    def forget(self) -> None:
        """Delete everything of this flow."""
        with self._begin() as connection:
            for table in metadata.sorted_tables:
                connection.execute(table.delete().where(table.c.flow == self.flow))

    def _control(self, kind: int) -> list[tuple[Any, Record]]:
        query = sql.select(control).where(control.c.flow == self.flow, control.c.kind == kind)
        rows = self._all(query.order_by(control.c.log_offset))
        return [(row, decode(bytes(row.key), bytes(row.value))) for row in rows]

    def _load_control(self, connection: Connection, entry: Entry, key: bytes, record: Record) -> None:
        if isinstance(record, Tombstone):
            connection.execute(control.delete().where(control.c.flow == self.flow, control.c.key == key))
            return
        row = {
            "flow": self.flow, "key": key, "kind": record.kind, "log_offset": entry.offset,
            "timestamp": entry.timestamp, "value": entry.value,
        }  # fmt: skip
        _upsert(connection, control, [row])

    def _delete_segment(self, connection: Connection, record: Tombstone) -> None:
        topic_id, topic, partition, start = record.key
        connection.execute(
            segments.delete().where(
                segments.c.flow == self.flow, segments.c.topic == topic, segments.c.partition == partition,
                segments.c.source_topic_id == str(topic_id), segments.c.source_start == start,
            )
        )  # fmt: skip

    def _scanned(self, connection: Connection, topic: str, topic_id: UUID, at: Mapping[int, int]) -> None:
        rows = [
            {"flow": self.flow, "topic": topic, "partition": number, "topic_id": str(topic_id), "next_offset": offset}
            for number, offset in at.items()
        ]
        _upsert(connection, scanned, rows)

    def _skip(self, topic: str, entry: Entry, error: MalformedRecord) -> None:
        self.malformed += 1
        log.warning("%s-%d offset %d is skipped: %s", topic, entry.partition, entry.offset, error)

    def _all(self, query: Any) -> Sequence[Any]:
        with self._begin() as connection:
            return connection.execute(query).all()

    def _begin(self) -> _Transaction:
        return _Transaction(self._ledger)


class _Transaction:
    """A transaction of the database whose errors are the ledger's own."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._context = ledger.engine.begin()

    def __enter__(self) -> Connection:
        try:
            return self._context.__enter__()
        except SQLAlchemyError as error:
            raise LedgerUnavailable(self._ledger.url, str(error.__cause__ or error)) from error

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        try:
            self._context.__exit__(kind, value, trace)
        except SQLAlchemyError as error:
            raise LedgerUnavailable(self._ledger.url, str(error.__cause__ or error)) from error
        if isinstance(value, SQLAlchemyError):
            raise LedgerUnavailable(self._ledger.url, str(value.__cause__ or value)) from value


def _segment_row(flow: str, offset: int, key: bytes, value: bytes, record: SegmentRecord) -> Row:
    return {
        "flow": flow, "topic": record.topic, "partition": record.partition,
        "source_topic_id": str(record.source_topic_id), "source_start": record.source_start,
        "source_end": record.source_end, "log_offset": offset, "window": record.window, "time_ms": record.time_ms,
        "copied": record.copied, "bytes": record.size, "key": key, "value": value,
    }  # fmt: skip


def _segment(row: Any) -> SegmentRecord:
    record = decode(bytes(row.key), bytes(row.value))
    assert isinstance(record, SegmentRecord)
    return record


def _upsert(connection: Connection, table: sql.Table, rows: Sequence[Row]) -> None:
    """Insert rows, or replace those with the same primary key."""
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment]
    keys = [column.name for column in table.primary_key.columns]
    statement = insert(table)
    others = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=others), list(rows))

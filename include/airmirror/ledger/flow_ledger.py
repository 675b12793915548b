"""One flow's part of the ledger: loaded from its internal topics, asked by all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

import sqlalchemy as sql
from sqlalchemy.engine import Connection, Engine

from airmirror.errors import AirmirrorError
from airmirror.ledger import groups, loading, metrics, outcomes, queries, samples, scanning, tables
from airmirror.ledger.database import exclude, objects_of, reading, rows_of, writing
from airmirror.ledger.errors import FreezeLost
from airmirror.ledger.groups import GroupLag, GroupOffset
from airmirror.ledger.loading import ANEW
from airmirror.ledger.metrics import PartitionMetrics
from airmirror.ledger.queries import WindowRow
from airmirror.ledger.state import State
from airmirror.naming.internal import is_mapping_topic
from airmirror.partitions import Entry, TopicPartition
from airmirror.wire.mappings import Decision, FlowIdentity, Lease, MappingRecord, Record, ResetRecord, Verified
from airmirror.wire.owners import Owners, Ownership

Ends = Mapping[int, int]  # offsets by partition
P = ParamSpec("P")
Answer = TypeVar("Answer")
Newest = TypeVar("Newest", bound=MappingRecord | Verified)


def _of_flow(
    query: Callable[Concatenate[Connection, str, P], Answer], *, writes: bool = False
) -> Callable[Concatenate[FlowLedger, P], Answer]:
    """The method that asks a query of the flow, or changes something of it, in a transaction of its own."""

    @wraps(query)
    def method(ledger: FlowLedger, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        with writing(ledger.engine, ledger.flow) if writes else reading(ledger.engine) as connection:
            return query(connection, ledger.flow, *args, **kwargs)

    return method


class FlowLedger:
    """One flow's part of the ledger; what the engine calls its index."""

    holds = _of_flow(queries.holds_of)
    of_kind = _of_flow(queries.records_of)
    mappings = _of_flow(queries.mappings_of)
    prunable = _of_flow(queries.prunable)
    numbers = _of_flow(metrics.numbers_of)
    failures = _of_flow(outcomes.failures_of)
    window_ends = _of_flow(outcomes.ends_of)
    first_mappings = _of_flow(groups.first_mappings)
    mappings_at = _of_flow(groups.mappings_at)
    mappings_around = _of_flow(groups.mappings_around)
    checkpoints = _of_flow(groups.all_checkpoints)
    checkpoint_times = _of_flow(groups.checkpoint_times)
    offset_syncs = _of_flow(groups.all_offset_syncs)
    last_begun = _of_flow(groups.last_begun)
    all_scanned = _of_flow(scanning.all_scanned)
    contents = _of_flow(scanning.contents)
    forget_topic = _of_flow(scanning.forget_topic, writes=True)
    forget_slept = _of_flow(scanning.forget_slept, writes=True)
    count_verified = _of_flow(metrics.count_verified, writes=True)
    note_standings = _of_flow(metrics.note_standings, writes=True)

    def __init__(self, engine: Engine, flow: str) -> None:
        self.engine = engine
        self.flow = flow
        self.malformed = 0
        self._decoded: dict[tuple[str, str, int], tuple[bytes, Record]] = {}

    def part(self, name: str) -> FlowLedger:
        """A part of its own, for what the flow has read in another flow's internal topics."""
        return FlowLedger(self.engine, f"{self.flow} {name}")

    def scanned(self, topic: str, topic_id: UUID) -> dict[int, int]:
        """The next offset to read, by partition; what was loaded from a topic of another id is forgotten."""
        return {row.partition: row.next_offset for row in self.read_of({topic: topic_id})}

    def read_of(self, topic_ids: Mapping[str, UUID]) -> list[Any]:
        """As ``scanned``, a row a partition of each topic; and of the last record that was read its offset and, where it is
        known, its leader epoch. Raises FreezeLost.
        """
        with reading(self.engine) as connection:
            every = connection.execute(rows_of(tables.scanned), {"flow": self.flow}).all()
        rows = [row for row in every if row.topic in topic_ids]
        others = {row.topic for row in rows if row.topic_id != str(topic_ids[row.topic])}
        for topic in others:
            if is_mapping_topic(topic):
                self.check_no_freeze_is_lost(topic)
            self.forget_topic(topic)
        return [row for row in rows if row.topic not in others]

    def check_no_freeze_is_lost(self, topic: str) -> None:
        """Raise FreezeLost where something is frozen by what was loaded from a mapping topic that was deleted."""
        frozen = self.owners().frozen
        if frozen and " " not in self.flow:  # of a part nothing is frozen, or it is read again
            raise FreezeLost(self.flow, topic, tuple(sorted(frozen)))

    def note_read(self, begun_ms: int) -> None:
        """Note that both internal topics were read up to where they ended then, or later. Once an hour is enough."""
        if begun_ms - (self.last_begun(scanning.READ) or 0) >= scanning.HOUR_MS:
            self.note_begun(scanning.READ, begun_ms)

    def state(self) -> State:
        """Return the contents of the flow's two internal topics, read in one transaction."""
        with reading(self.engine) as connection:
            mappings = self._newest(connection, tables.newest, MappingRecord)
            own, others = queries.progress_of(connection, self.flow)
            return State(
                mappings=mappings,
                progress={key: offset for key, offset in others.items() if key not in mappings} | own,
                verified=self._newest(connection, tables.verified, Verified),
                holds=queries.holds_of(connection, self.flow),
                forgotten=scanning.forgotten(connection, self.flow),
                scanned=scanning.all_scanned(connection, self.flow),
            )

    def load(
        self,
        topic: str,
        topic_id: UUID,
        entries: Sequence[Entry],
        at: Ends,
        since: Ends | None = None,
        *,
        kind: str = "",
    ) -> None:
        """Take in records of an internal topic, in log order; malformed ones are counted and logged.

        ``at``: the next offset to read after them, by partition; ``since``: the offset they were read from. What was
        loaded already is not loaded again. ``kind``: "checkpoints" or "offset_syncs", which a policy of one's own may call as
        it likes; else the topic's name tells. Raises LedgerBegunAnew where offsets between would be missing.
        """
        table = tables.metadata.tables[kind] if kind else tables.tables_of(topic)[0]
        with writing(self.engine, self.flow) as connection:
            new = scanning.advance(connection, self.flow, topic, topic_id, entries, at=at, since=since)
            malformed = loading.load(connection, self.flow, topic, new, table)
            self.malformed += malformed
            if malformed and " " not in self.flow:  # a flow's own topics, not a part's
                metrics.add(connection, self.flow, {(metrics.MALFORMED, table.name): float(malformed)})

    def progress(self) -> dict[tuple[str, int], int]:
        """The last source offset that MirrorMaker 2's topic says was copied, by topic and partition."""
        with reading(self.engine) as connection:
            own, others = queries.progress_of(connection, self.flow)
        return others | own

    def leases(self) -> list[tuple[int, int, Lease]]:
        """(offset, append time, lease) in log order."""
        with reading(self.engine) as connection:
            rows = queries.control_of(connection, self.flow, Lease.kind)
        return [(row.log_offset, row.timestamp, record) for row, record in rows if isinstance(record, Lease)]

    def verified(self) -> dict[tuple[str, int], Verified]:
        """The verified offset's record (invariant F), by topic and partition."""
        with reading(self.engine) as connection:
            return self._newest(connection, tables.verified, Verified)

    def decisions(self) -> list[Decision]:
        """Return the decisions of operators, in log order."""
        return self.of_kind(Decision)

    def owners(self) -> Owners:
        """Return who may write which topic of the flow."""
        return Owners.of(self.of_kind(Ownership))

    def resets(self) -> list[ResetRecord]:
        """Return the decisions of ``airmirror reset``, in log order."""
        return self.of_kind(ResetRecord)

    def remote_topics(self) -> dict[str, str]:
        """Return the remote topics that an operator has chosen instead of the policy's, by source topic."""
        renamed = scanning.renamed(self.resets())
        last = self.last_mappings() if renamed else {}
        return {topic: record.remote_topic for (topic, _), record in last.items() if topic in renamed}

    def identity(self) -> FlowIdentity | None:
        found = self.of_kind(FlowIdentity)
        return found[-1] if found else None

    def last_mappings(self) -> dict[tuple[str, int], MappingRecord]:
        """The newest mapping record, by topic and partition: that of the largest source end."""
        with reading(self.engine) as connection:
            return self._newest(connection, tables.newest, MappingRecord)

    def unverified(self) -> list[MappingRecord]:
        """Mapping records past their partition's verified offset, by topic, partition and source offset.

        None of what is forgotten.
        """
        with reading(self.engine) as connection:
            over = scanning.forgotten(connection, self.flow)
            return [record for record in queries.unverified(connection, self.flow) if record.key not in over]

    def of_window(self, window: str, after: int = -1) -> Iterator[MappingRecord]:
        """Yield a window's mapping records after an offset of the mapping topic, by topic, partition and source offset."""
        with reading(self.engine) as connection:
            yield from queries.of_window(connection, self.flow, window, after)

    def windows(self, limit: int = 20) -> list[WindowRow]:
        """The latest windows that committed anything, the newest first."""
        with reading(self.engine) as connection:
            return queries.window_rows(connection, self.flow, queries.latest_windows(connection, self.flow, limit))

    def note(
        self, counters: Mapping[tuple[str, str], float], gauges: Mapping[tuple[str, str], float] | None = None
    ) -> None:
        """Add to the flow's own counters and set its gauges, by name and label."""
        with writing(self.engine, self.flow) as connection:
            metrics.add(connection, self.flow, counters)
            metrics.put(connection, self.flow, gauges or {})

    def note_sample(self, *, lags: bool, begun_ms: int | None = None) -> None:
        """Note the flow's numbers as they stand, for plots; ``lags``: those have just been measured. ``begun_ms``: when their
        window began."""
        with writing(self.engine, self.flow) as connection:
            samples.note(connection, self.flow, int(time.time() * 1000), lags=lags, begun_ms=begun_ms)

    def note_window(
        self,
        window: str,
        errors: Mapping[TopicPartition, AirmirrorError],
        passed: Callable[[TopicPartition], bool],
        *,
        idle: bool = False,
    ) -> None:
        """Note what is wrong after a window, by place, and how it ended; ``passed`` tells what of what was wrong is right now.

        ``idle``: it had nothing to do, and is not among the last windows.
        """
        now = int(time.time() * 1000)
        with writing(self.engine, self.flow) as connection:
            outcomes.note_failures(connection, self.flow, window, errors, passed, now=now)
            if not idle:
                outcomes.note_end(connection, self.flow, window, errors, now=now)

    def other(self, flow: str) -> FlowLedger:
        """Another flow's part of the same ledger."""
        return FlowLedger(self.engine, flow)

    def group_offsets(self) -> list[GroupOffset]:
        """Return the rows of the last run of sync_group_offsets, by group, topic and partition."""
        with reading(self.engine) as connection:
            return groups.of_groups(connection, self.flow, tables.group_offsets, GroupOffset)

    def note_group_offsets(self, rows: Sequence[GroupOffset]) -> None:
        """Replace the last run's rows with those of a new one."""
        with writing(self.engine, self.flow) as connection:
            groups.replace_rows(connection, self.flow, tables.group_offsets, rows)

    def note_group_lags(self, rows: Sequence[GroupLag]) -> None:
        """Replace the lags of the source's groups."""
        with writing(self.engine, self.flow) as connection:
            groups.replace_rows(connection, self.flow, tables.group_lags, rows)

    def partition_metrics(self) -> list[PartitionMetrics]:
        """Return the numbers of partitions as the last windows and gates left them, by topic and partition."""
        with reading(self.engine) as connection:
            found = objects_of(connection, tables.partition_metrics, PartitionMetrics, self.flow)
        return sorted(found, key=lambda row: row.key)

    def group_lags(self) -> list[GroupLag]:
        """Return the lags of the source's groups when they were last read, by group, topic and partition."""
        with reading(self.engine) as connection:
            return groups.of_groups(connection, self.flow, tables.group_lags, GroupLag)

    def note_begun(self, task: str, time_ms: int | None = None) -> None:
        """Note that a task with its own interval is done, which it began at ``time_ms`` (epoch milliseconds), or now."""
        begun_ms = int(time.time() * 1000) if time_ms is None else time_ms
        with writing(self.engine, self.flow) as connection:
            groups.note_begun(connection, self.flow, task, begun_ms)

    def forget(self) -> None:
        """Delete everything of this flow that can be read or measured again."""
        with writing(self.engine, self.flow) as connection:
            for table in (table for table in tables.metadata.sorted_tables if table not in tables.KEPT):
                connection.execute(table.delete().where(table.c.flow == self.flow))

    def anew(self) -> FlowLedger:
        """An empty part in which the flow is read again; ``replace_by`` puts it in place."""
        beside = self.part(ANEW)
        beside.forget()
        return beside

    def replace_by(self, beside: FlowLedger) -> bool:
        """Take what another part holds for everything of this flow, at once; False, and nothing, where this one has read more."""
        with writing(self.engine, self.flow) as connection:
            exclude(connection, beside.flow)  # another rebuild may empty it, and load it
            read, own = scanning.all_scanned(connection, beside.flow), scanning.all_scanned(connection, self.flow)
            same = {topic: at for topic, at in own.items() if topic in read and at[0] == read[topic][0]}
            if not State(scanned=read).reaches({topic: at for topic, at in same.items() if scanning.is_own(topic)}):
                return False
            for table in (table for table in tables.metadata.sorted_tables if table not in tables.KEPT):
                connection.execute(table.delete().where(table.c.flow == self.flow))
                connection.execute(table.update().where(table.c.flow == beside.flow).values(flow=self.flow))
        return True

    def _newest(self, connection: Connection, table: sql.Table, kind: type[Newest]) -> dict[tuple[str, int], Newest]:
        """The records of a table that has one a partition. A window asks several times: each is decoded once."""
        found: dict[tuple[str, int], Newest] = {}
        for row in connection.execute(rows_of(table), {"flow": self.flow}):
            key, content = (row.topic, row.partition), bytes(row.key) + bytes(row.value)
            before = self._decoded.get((table.name, *key))
            if before is None or before[0] != content:
                before = self._decoded[(table.name, *key)] = (content, queries.record_of(row))
            _, record = before
            if isinstance(record, kind):
                found[key] = record
        return found

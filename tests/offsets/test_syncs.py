"""Offset syncs: MirrorMaker 2's bytes, chosen from verified mapping records, written once and never backwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st

from airmirror.clusters.admin import client
from airmirror.clusters.admin.client import AccessDenied
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import parse
from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import catch_up_ledger
from airmirror.ledger import Ledger
from airmirror.offsets import writing
from airmirror.offsets.syncs import choose, emit_offset_syncs
from airmirror.partitions import TopicPartition
from airmirror.windows import index
from airmirror.wire.mappings import MappedRange, MappingRecord
from airmirror.wire.mirrormaker import OffsetSync
from airmirror.wire.plain import LogRecord
from airmirror.wire.primitives import MalformedRecord
from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK, free_port
from support.flows import a_flow, mirror
from support.topics import Record, produce, read_all


@pytest.mark.parametrize(("patience", "read_to"), [(5.0, 12), (0.0, 10)])
def test_a_commit_counts_whose_marker_is_a_moment_late(
    monkeypatch: pytest.MonkeyPatch, patience: float, read_to: int
) -> None:
    """A commit is answered before its marker is written, and what another writer has committed may decide a failover."""
    log, stable, read = TopicPartition("checkpoints", 0), [10, 10, 12, 12], list[int]()

    def offsets(*_: object, read_committed: bool) -> dict[TopicPartition, int]:
        return {log: stable.pop(0) if read_committed else 12}

    monkeypatch.setattr(writing, "offsets_with_patience", offsets)
    monkeypatch.setattr(writing, "scanned_of", lambda *_: {})
    monkeypatch.setattr(writing, "load_tail", lambda routes, log, start, end, load: read.append(end))
    routes: Any = SimpleNamespace(refresh=lambda topics: None, topic_ids={log.topic: UUID(int=7)})
    ledger: Any = SimpleNamespace(load=print)
    writing.load_written(routes, log.topic, ledger, "checkpoints", patience=patience)
    assert read == [read_to]


class Refusing:
    """A producer that is refused at once, or at its first record."""

    def __init__(self, code: int, at: str) -> None:
        self.error, self.at = KafkaError(code), at

    def init_transactions(self, _: float) -> None:
        if self.at == "init":
            raise KafkaException(self.error)

    def produce(self, _: str, *, on_delivery: Any, **__: Any) -> None:
        on_delivery(self.error, None)

    def poll(self, _: float) -> None: ...

    def begin_transaction(self) -> None: ...

    def commit_transaction(self, _: float) -> None:
        raise KafkaException(KafkaError(KafkaError._STATE))


@pytest.mark.parametrize(
    ("code", "at", "expected"),
    [
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "init", AccessDenied),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "produce", AccessDenied),
        (KafkaError._TIMED_OUT, "init", writing.RecordsNotWritten),
        (KafkaError._MSG_TIMED_OUT, "produce", writing.RecordsNotWritten),
    ],
)
def test_what_is_denied_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, code: int, at: str, expected: type[AirmirrorError]
) -> None:
    monkeypatch.setattr(writing, "producer", lambda *_: Refusing(code, at))
    flow = a_flow("a")
    into = writing.Destination(flow, flow.source, "mm2-offset-syncs.west.internal", "syncs")
    with pytest.raises(expected, match=KafkaError(code).str()) as failed:
        writing.write(into, lambda: [OffsetSync("orders", 0, 1, 1)], held=lambda: None, tell=lambda _: None)
    assert failed.value.transient == (expected is writing.RecordsNotWritten)


def mapping_record(*runs: tuple[int, int, int]) -> MappingRecord:
    ranges = tuple(MappedRange(*run) for run in runs)
    start, end = ranges[0].source_first, ranges[-1].source_end
    return MappingRecord(
        source_topic_id=UUID(int=1),
        topic="orders",
        partition=0,
        source_start=start,
        window="w",
        slot=0,
        time_ms=0,
        source_end=end,
        target_topic_id=UUID(int=2),
        remote_topic="east.orders",
        target_start=ranges[0].target_first,
        target_end=ranges[-1].target_end,
        copied=sum(run.count for run in ranges),
        control=0,
        aborted=0,
        holes=0,
        lost=0,
        size=0,
        max_timestamp=0,
        leader_epoch=0,
        digest=bytes(16),
        ranges=ranges,
    )


@pytest.mark.parametrize("enabled", [True, False])
def test_offset_syncs_can_be_switched_off(enabled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then no cluster is asked for anything: none answers here."""
    monkeypatch.setattr(client.describe, "__defaults__", (1.0,))  # seconds
    nobody = f"{LOOPBACK}:{free_port()}"
    lines = (
        f"clusters = a, b\na.bootstrap.servers = {nobody}\nb.bootstrap.servers = {nobody}\na->b.enabled = true\n"
        f"a->b.topics = orders\nemit.offset-syncs.enabled = {str(enabled).lower()}\nadmin.request.timeout.ms = 1000\n"
    )
    flow = parse(lines, "test").flow("a->b")
    with closing(Ledger(f"sqlite:///{tmp_path}/ledger.db")) as ledger:
        asked = nullcontext() if not enabled else pytest.raises(AirmirrorError)
        with asked:
            assert emit_offset_syncs(flow, ledger.flow("a->b"), window="w") == 0


def test_golden_bytes() -> None:
    sync = OffsetSync("t1", 3, 100, 200)
    assert sync.encode_key().hex() == "0002743100000003"
    assert sync.encode_value().hex() == "000000000000006400000000000000c8"
    assert OffsetSync.decode(sync.encode_key(), sync.encode_value()) == sync
    with pytest.raises(MalformedRecord):
        OffsetSync.decode(sync.encode_key()[:-1], sync.encode_value())


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 30)), min_size=1, max_size=8),
    st.integers(-1, 60),
    st.integers(0, 200),
    st.integers(0, 5),
    st.integers(0, 10),
)
def test_chosen_syncs_map_real_records(
    steps: list[tuple[int, int, int]], written: int, verified: int, most: int, lag_max: int
) -> None:
    runs: list[tuple[int, int, int]] = []
    source = target = 0
    for hole, marker, count in steps:
        runs.append((source + hole, target + marker, count))
        source, target = source + hole + count, target + marker + count
    mapping = {first + n: there + n for first, there, count in runs for n in range(count)}
    chosen = choose([mapping_record(*runs)], written, verified, most, lag_max)
    assert all(mapping[sync.upstream] == sync.downstream for sync in chosen)
    upstream = [sync.upstream for sync in chosen]
    assert upstream == sorted(set(upstream)) and len(upstream) <= most + 2
    allowed = [offset for offset in mapping if written < offset <= verified]
    assert bool(allowed) == bool(upstream)
    if allowed:
        assert upstream[0] == min(allowed) and upstream[-1] == max(allowed)


def test_syncs_are_written_up_to_the_verified_offset_and_once(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    read = index.read_records

    def noting(routes: Routes, partition: TopicPartition, start: int, end: int, **more: float) -> Iterator[LogRecord]:
        if partition.topic.startswith("mm2-offset-syncs"):
            begun.append(start)
        return read(routes, partition, start, end, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(index, "read_records", noting)
    settings = {"offset-syncs.topic.location": "target", "offset-syncs.topic.replication.factor": "1"}
    flow = mirror(east, west, tmp_path, settings=settings)
    produce(east, flow.topic, [Record(b"v%d" % n) for n in range(50)])
    flow.run()
    assert emit_offset_syncs(flow.flow, flow.opened.ledger, window="syncs-1") == 2
    assert emit_offset_syncs(flow.flow, flow.opened.ledger, window="syncs-2") == 0
    produce(east, flow.topic, [Record(b"v%d" % n) for n in range(25)])
    flow.run()
    assert emit_offset_syncs(flow.flow, flow.opened.ledger, window="syncs-3") == 2
    assert emit_offset_syncs(flow.flow, flow.opened.ledger, window="syncs-4") == 0
    assert begun and begun == sorted(set(begun))  # nothing of the topic was read twice
    flow.opened.ledger.forget()
    catch_up_ledger(flow.opened)
    assert emit_offset_syncs(flow.flow, flow.opened.ledger, window="syncs-5") == 0
    source = flow.flow.source.alias
    (found,) = read_all(west, f"mm2-offset-syncs.{source}.internal").values()
    syncs = [OffsetSync.decode(record.key or b"", record.value or b"") for record in found]
    # The marker of the first window's transaction lies between the two on the target.
    assert [(sync.upstream, sync.downstream) for sync in syncs] == [(0, 0), (49, 49), (50, 51), (74, 75)]
    assert flow.assert_equal() == 75

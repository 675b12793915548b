"""Reading a log: offsets of partitions, batches of a range, and the plain records of small internal topics."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from kafka.protocol.consumer.offsets import ListOffsetsRequest

from airmirror.clusters.protocol.asking import ask_leaders, each_partition
from airmirror.clusters.protocol.connection import LARGEST_FETCH, Allocate, BrokerUnreachable, Connection
from airmirror.clusters.protocol.errors import (
    UNKNOWN_SERVER_ERROR,
    FetchFailed,
    LastStableOffsetStuck,
    PartitionMoved,
    ReadDenied,
    RecordsWithheld,
    error_name,
)
from airmirror.clusters.protocol.routes import TOPIC_DENIED, LeaderNotAvailable, Routes, patiently
from airmirror.clusters.protocol.topic_configs import is_compacted
from airmirror.partitions import TopicPartition, grouped
from airmirror.wire.aborted import AbortedFilter
from airmirror.wire.batch import Batch, CorruptBatch, UnknownMessageFormat
from airmirror.wire.batches import parse
from airmirror.wire.codecs import UnknownCodec
from airmirror.wire.plain import LogRecord, plain_records
from airmirror.wire.requests import (
    Fetched,
    FetchPosition,
    MalformedResponse,
    decode_fetch,
    encode_fetch,
    fetch_throttle,
)

LIST_OFFSETS = 2
EARLIEST, LATEST, FIRST_TIME = -2, -1, 0
OFFSET_OUT_OF_RANGE = 1
LEFT_OUT = "its leader did not name a transaction that is aborted; let another replica lead it"
# Errors that pass: the leader moved, or a broker is starting. Metadata is read again and the request sent again.
MOVED = frozenset({3, 5, 6, 7, 9, 13, 56, 74, 75, 76, 78, 100, 103, 106})


def list_offsets(
    routes: Routes, partitions: Iterable[TopicPartition], at: int, *, read_committed: bool = False
) -> dict[TopicPartition, int]:
    """The earliest or latest offset of each partition, or that of the first record of a time and later (-1: there is none); the
    latest of read_committed is the last stable offset.

    Raises PartitionMoved (ask again after a refresh) or FetchFailed.
    """
    found = _listed(routes, partitions, at, read_committed=read_committed)
    return {partition: offset for partition, (offset, _) in found.items()}


def _listed(
    routes: Routes, partitions: Iterable[TopicPartition], at: int, *, read_committed: bool = False
) -> dict[TopicPartition, tuple[int, int]]:
    """Offsets with the timestamps of their records (-1 where a time was not asked for). All brokers are asked at once."""
    found: dict[TopicPartition, tuple[int, int]] = {}
    of_topic = ListOffsetsRequest.ListOffsetsTopic
    of_partition = of_topic.ListOffsetsPartition
    for node, keys in grouped((routes.leader(key).node, key) for key in partitions).items():
        connection = routes.connection(node)
        asked = grouped(
            (topic, of_partition(partition_index=number, current_leader_epoch=-1, timestamp=at))
            for topic, number in keys
        )
        topics = [of_topic(name=topic, partitions=its) for topic, its in asked.items()]
        request = ListOffsetsRequest(replica_id=-1, isolation_level=int(read_committed), topics=topics)
        answer = connection.request(request, connection.version(LIST_OFFSETS, 4, 6, "ListOffsets"))
        for partition, item in each_partition(answer.topics):
            if item.error_code in MOVED:
                raise PartitionMoved(routes.alias, partition, error_name(item.error_code))
            if item.error_code == TOPIC_DENIED:
                routes.refresh([partition.topic])  # which says so where the topic may not be described
            if item.error_code:
                raise FetchFailed(routes.alias, partition, error_name(item.error_code))
            found[partition] = item.offset, item.timestamp
        if missing := set(keys) - set(found):
            raise connection.nonsense(f"its answer to ListOffsets leaves out {min(missing)}")
    return found


def offsets_with_patience(
    routes: Routes,
    partitions: Iterable[TopicPartition],
    at: int,
    *,
    read_committed: bool = False,
    patience: float = 30.0,
) -> dict[TopicPartition, int]:
    """``list_offsets`` that refreshes the metadata where a leader is not known, or has moved, or can't be reached."""
    wanted = list(partitions)
    return ask_leaders(
        routes, wanted, lambda: list_offsets(routes, wanted, at, read_committed=read_committed), patience
    )


def oldest_times(
    routes: Routes, partitions: Iterable[TopicPartition], *, patience: float = 30.0
) -> dict[TopicPartition, int]:
    """The timestamp of each partition's oldest record, in epoch milliseconds; of none where there is no record that has one,
    and not a later one than now: producers write any. As patient as ``offsets_with_patience``."""
    wanted, now = list(partitions), int(time.time() * 1000)
    found = ask_leaders(routes, wanted, lambda: _listed(routes, wanted, FIRST_TIME), patience)
    return {partition: min(time_ms, now) for partition, (_, time_ms) in found.items() if time_ms >= 0}


def send_fetch(
    routes: Routes,
    connection: Connection,
    positions: Mapping[TopicPartition, FetchPosition],
    *,
    max_wait_ms: int,
    max_bytes: int,
    read_committed: bool,
) -> int:
    """Send a fetch request and return the version its answer has."""
    version = connection.fetch_version
    request = encode_fetch(
        version,
        connection.next_correlation_id(),
        connection.client_id,
        positions,
        routes.topic_ids,
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        read_committed=read_committed,
    )
    connection.send([request])
    return version


def receive_fetch(
    routes: Routes, connection: Connection, version: int, allocate: Allocate = bytearray
) -> tuple[memoryview, dict[TopicPartition, Fetched]]:
    """The response's buffer and its partitions, for the oldest fetch under way on ``connection``."""
    buffer = connection.receive(allocate, LARGEST_FETCH)
    try:
        throttle_ms = fetch_throttle(buffer)
        error, partitions = decode_fetch(version, buffer, routes.topic_names)
    except MalformedResponse as problem:
        raise connection.nonsense(f"its answer to a fetch ({problem.reason})") from problem
    connection.throttle.note(throttle_ms)
    if error:
        raise BrokerUnreachable(routes.alias, connection.broker, f"it refuses fetches: {error_name(error)}")
    return buffer, partitions


def read_records(
    routes: Routes,
    partition: TopicPartition,
    start: int,
    end: int,
    *,
    read_committed: bool = True,
    patience: float = 60.0,
) -> Iterator[LogRecord]:
    """The records of a small topic's partition with offsets in ``[start, end)``, decoded one by one.

    Waits until everything below ``end`` can be read: LastStableOffsetStuck where an open transaction keeps it back for
    longer than ``patience`` seconds. A position below the log's start is moved up to it.
    """
    read = read_batches(routes, partition, start, end, read_committed=read_committed, patience=patience)
    for buffer, batches in read:
        for batch, aborted in batches:
            if aborted or batch.is_control or batch.next_offset <= start:
                continue
            try:
                yield from (record for record in plain_records(buffer, batch) if start <= record.offset < end)
            except (CorruptBatch, UnknownCodec) as error:
                raise FetchFailed(routes.alias, partition, str(error), batch.base_offset) from error


def read_batches(
    routes: Routes,
    partition: TopicPartition,
    start: int,
    end: int,
    *,
    read_committed: bool,
    patience: float = 60.0,
    max_bytes: int = 4 << 20,
) -> Iterator[tuple[memoryview, list[tuple[Batch, bool]]]]:
    """Every batch that overlaps ``[start, end)``, a response at a time: its buffer and (batch, whether aborted).

    Continues until a batch ends at or past ``end``. An empty answer proves no hole, since a broker gives one when its remote
    store is slow (KIP-405): only in a compacted topic, which has none, the rest of the range may be holes. Raises FetchFailed;
    LastStableOffsetStuck or RecordsWithheld after ``patience`` seconds without a record.
    """
    position = start
    filter_ = AbortedFilter()
    stalled = patiently(
        patience, LastStableOffsetStuck, RecordsWithheld, PartitionMoved, LeaderNotAvailable, BrokerUnreachable
    )
    while position < end:
        for attempt in stalled:
            with attempt:
                try:
                    buffer, fetched = _fetch_one(
                        routes=routes,
                        partition=partition,
                        position=position,
                        read_committed=read_committed,
                        max_bytes=max_bytes,
                    )
                except (PartitionMoved, LeaderNotAvailable, BrokerUnreachable):
                    routes.drop_all()
                    routes.refresh([partition.topic])
                    raise
                if fetched.error == OFFSET_OUT_OF_RANGE and position < fetched.log_start_offset:
                    position = fetched.log_start_offset
                    filter_.jump()
                    continue
                if fetched.error == UNKNOWN_SERVER_ERROR:
                    raise RecordsWithheld(routes.alias, partition, position, end, error_name(fetched.error))
                readable = fetched.last_stable_offset if read_committed else fetched.high_watermark
                if fetched.start == fetched.end and readable < end:
                    raise LastStableOffsetStuck(routes.alias, partition, position, end)
                if fetched.start == fetched.end and not is_compacted(routes, partition.topic):
                    raise RecordsWithheld(routes.alias, partition, position, end, "an answer without records")
        if fetched.error == OFFSET_OUT_OF_RANGE:
            continue
        if fetched.start == fetched.end:
            return  # the rest are holes
        if read_committed:
            filter_.begin(fetched.aborted, buffer, fetched.start, fetched.end, position)
            if filter_.left_out:
                raise FetchFailed(routes.alias, partition, LEFT_OUT, filter_.left_out[0].first_offset)
        batches = []
        begun = position
        try:
            for batch in parse(buffer, fetched.start, fetched.end):
                aborted = read_committed and filter_.is_aborted(buffer, batch)
                if batch.base_offset >= end:
                    position = end
                    break
                batches.append((batch, aborted))
                position = max(position, batch.next_offset)
        except (CorruptBatch, UnknownMessageFormat) as error:
            raise FetchFailed(routes.alias, partition, str(error), position) from error
        if position == begun:
            raise FetchFailed(routes.alias, partition, "its leader answers with other offsets", position)
        yield buffer, batches


def _fetch_one(
    routes: Routes, partition: TopicPartition, position: int, read_committed: bool, max_bytes: int
) -> tuple[memoryview, Fetched]:
    leader = routes.leader(partition)
    connection = routes.connection(leader.node)
    where = FetchPosition(position, leader.epoch, -1, max_bytes)
    while True:
        version = send_fetch(
            routes, connection, {partition: where}, max_wait_ms=100, max_bytes=max_bytes, read_committed=read_committed
        )
        buffer, partitions = receive_fetch(routes, connection, version)
        if partitions or not connection.throttle.seconds:
            break  # else a quota has kept everything back: it is asked again when the broker lets it
    if partition not in partitions:
        raise connection.nonsense(f"its answer to a fetch leaves out {partition}")
    fetched = partitions[partition]
    if fetched.error in MOVED:
        raise PartitionMoved(routes.alias, partition, error_name(fetched.error))
    if fetched.error == OFFSET_OUT_OF_RANGE:
        earliest = list_offsets(routes, [partition], EARLIEST)[partition]
        fetched.log_start_offset = earliest
        if position >= earliest:
            raise FetchFailed(routes.alias, partition, "its end is below this offset", position)
    elif fetched.error not in (0, UNKNOWN_SERVER_ERROR):
        failed = ReadDenied if fetched.error == TOPIC_DENIED else FetchFailed
        raise failed(routes.alias, partition, error_name(fetched.error), position)
    return buffer, fetched

"""The demo's records are the tables' rows, and reach the cluster as they are, in the codec of their table."""

from __future__ import annotations

import json
import time
from itertools import cycle, islice
from pathlib import Path

import pytest
from kafka.record.memory_records import MemoryRecords
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror_local.brokers import Broker
from airmirror_local.records import (
    TABLES,
    RecordsNotProduced,
    Table,
    create_topics,
    keep_producing,
    load,
    read_table,
)
from support.topics import delete_topic, read_all

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def codecs_in(log: Path) -> set[int]:
    """The codecs of the batches in a segment file, which holds nothing but record batches.

    But for those of one record: librdkafka sends it as it is where it would not shrink.
    """
    batches = MemoryRecords(log.read_bytes())
    found = set()
    while batches.has_next():
        batch = batches.next_batch()
        if batch.records_count > 1:
            found.add(batch.compression_type)
    return found


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_row_is_json_with_key_headers_and_its_own_time(table: Table) -> None:
    rows = read_table(table)
    assert len(rows) > 50
    assert len({row.timestamp for row in rows}) > 10
    for number, row in enumerate(rows):
        assert row.key
        assert row.timestamp > 0  # librdkafka takes 0 for the present
        assert row.headers == (("table", table.name.encode()), ("row", str(number).encode()))
        assert table.time in json.loads(row.value)


def test_all_codecs_are_used() -> None:
    assert {table.codec for table in TABLES} == set(CODECS)


def test_the_tables_are_loaded_and_continue_arriving(east: Broker) -> None:
    create_topics(east.bootstrap)
    try:
        told, begun = list[int](), int(time.time() * 1000)
        loaded = load(east.bootstrap, share=0.5, tell=told.append)
        assert list(loaded.values()) == told
        with keep_producing(east.bootstrap, share=0.5) as arrivals:
            for attempt in Retrying(stop=stop_after_delay(120), wait=wait_fixed(0.1), reraise=True):
                with attempt:
                    assert min(arrivals.sent.get(table.name, 0) for table in TABLES) >= 200
        for table in TABLES:
            rows = read_table(table)
            assert loaded[table.name] == len(rows) // 2
            produced = list(islice(cycle(rows), loaded[table.name] + arrivals.sent[table.name]))
            read = [record for records in read_all(east, table.name).values() for record in records]
            assert sorted((r.key, r.value, r.headers) for r in produced) == sorted(r.content[:3] for r in read)
            old = sorted(record.timestamp for record in read if record.timestamp < begun)
            assert old == sorted(row.timestamp for row in produced[: loaded[table.name]]), (
                "what arrives is of the present"
            )
            assert {record.timestamp_type for record in read} == {1}
            segments = (east.directory / "data").glob(f"{table.name}-*/00000000000000000000.log")
            assert {codec for log in segments for codec in codecs_in(log)} == {CODECS[table.codec]}
    finally:
        for table in TABLES:
            delete_topic(east, table.name)


def test_what_the_cluster_refuses_is_an_error(east: Broker) -> None:
    refused = r"^51 records of iowa-electricity were not produced: .*UNKNOWN_TOPIC"
    with pytest.raises(RecordsNotProduced, match=refused):
        load(east.bootstrap, [table for table in TABLES if table.name == "iowa-electricity"])


def test_records_that_stop_arriving_are_an_error(east: Broker) -> None:
    with pytest.raises(RecordsNotProduced), keep_producing(east.bootstrap) as arrivals:
        for attempt in Retrying(stop=stop_after_delay(120), wait=wait_fixed(0.1), reraise=True):
            with attempt:
                assert arrivals.count >= 100

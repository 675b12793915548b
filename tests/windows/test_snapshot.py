"""A source's disk that was restored from a snapshot: the same topic and leader epochs, other records before the position."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.routes import Routes
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.runbooks.failback.plan import failback_plan
from airmirror.slot.errors import SourceDiverged
from airmirror.windows.diverged import is_same
from airmirror.windows.resets import Choice
from airmirror.wire.mappings import MappingRecord
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support.faults import records
from support.flows import Mirror, mirror
from support.topics import open_transaction, produce, read_all

ACCEPT = Choice.ACCEPT_LOSS
SAME = "the source's logs are those that were copied"


def copied(flow: Mirror) -> MappingRecord:
    """A window, which finds nothing wrong; the newest mapping record."""
    result = flow.run()
    assert result.is_verified and not [row.error for row in result.rows if row.error]
    (last,) = flow.opened.ledger.last_mappings().values()
    return last


def is_the_source_s(flow: Mirror, last: MappingRecord) -> bool:
    with Routes(flow.flow.source, "test") as routes:
        routes.refresh([flow.topic])
        return is_same(routes, last)


@pytest.mark.parametrize("codec", [pytest.param("none", marks=pytest.mark.long), "lz4"])
def test_a_window_begins_with_the_batch_before_it(east: Broker, west: Broker, tmp_path: Path, codec: str) -> None:
    """Whatever that is: one of many small ones that are merged, a large one, a marker, what a transaction has left."""
    flow = mirror(east, west, tmp_path)
    settings = {"linger.ms": "0", "batch.num.messages": "2"}
    produce(east, flow.topic, records(40), partition=0, settings=settings, codec=codec)
    lasts = [copied(flow)]
    produce(east, flow.topic, records(300, 100), partition=0, codec=codec)
    lasts.append(copied(flow))
    with open_transaction(east, flow.topic, records(3, 1_000), partition=0, codec=codec) as producer:
        producer.commit_transaction()
    lasts.append(copied(flow))
    with open_transaction(east, flow.topic, records(3, 2_000), partition=0, codec=codec):
        pass
    lasts.append(copied(flow))
    produce(east, flow.topic, records(1, 3_000), partition=0, codec=codec)
    lasts.append(copied(flow))
    assert all(last.source_checksum >= 0 and is_the_source_s(flow, last) for last in lasts)
    assert not is_the_source_s(flow, replace(lasts[-1], source_checksum=lasts[0].source_checksum))
    assert flow.assert_equal() == 344


def test_a_log_that_is_another_one_is_told_by_windows_and_by_the_plan_of_a_failback(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """As a restored disk leaves it: the batch before the position is not the one of which the mapping record tells."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(30), partition=0)
    last = copied(flow)
    other = replace(last, source_checksum=last.source_checksum ^ 1)
    with Appender(flow.flow.target, f"airmirror-mappings.{flow.flow.source.alias}.internal") as appender:
        appender.append([(other.encode_key(), other.encode_value())])
    assert not flow.run().rows, "nothing new: nothing is asked"
    found = {each.what: each for each in failback_plan(flow.opened).findings}
    assert found[SAME].level == "warn", found[SAME]
    produce(east, flow.topic, records(10, 30), partition=0)
    for _ in range(2):  # it stays so until a person decides
        result = flow.run()
        assert [type(row.error) for row in result.rows] == [SourceDiverged] and result.copied == 0
        assert "the batch at offset 0 is another one now" in str(result.rows[0].error)
    carry_out(flow.opened, ResetOrder((flow.topic,), (), ACCEPT, by="me", reason="a test"))
    copied(flow)
    assert flow.assert_equal() == 40, "the records were equal all the same: it resumes where it stood"


@pytest.mark.long
def test_a_source_that_was_restored_from_a_snapshot(west: Broker, tmp_path: Path) -> None:
    east = start_broker(tmp_path, "own-east", IMPATIENT)
    try:
        flow = mirror(east, west, tmp_path)
        produce(east, flow.topic, records(150), partition=0)
        east.stop()
        shutil.copytree(east.directory / "data", tmp_path / "snapshot", symlinks=True)
        east.restart()
        produce(east, flow.topic, records(200, 150), partition=0)
        copied(flow)
        east.kill()
        shutil.rmtree(east.directory / "data")
        shutil.copytree(tmp_path / "snapshot", east.directory / "data", symlinks=True)
        east.restart()
        produce(east, flow.topic, records(350, 5_000), partition=0)
        found = {each.what: each for each in failback_plan(flow.opened).findings}
        assert found[SAME].level == "warn", found[SAME]
        result = flow.run()
        assert [type(row.error) for row in result.rows] == [SourceDiverged] and result.copied == 0
        (reset,) = carry_out(flow.opened, ResetOrder((flow.topic,), (), ACCEPT, by="me", reason="a test"))
        assert reset.start == 150, "where the two logs part"
        copied(flow)
        there = [each.value for each in read_all(west, flow.remote_topic)[0]]
        assert there == [each.value for each in [*records(350), *records(350, 5_000)]]
    finally:
        east.kill()

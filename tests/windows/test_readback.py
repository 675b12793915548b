"""Read back sees what the target holds: altered on its way there, on its disk, or on the way back, on both paths (D)."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.slot.readback import ReadBack
from airmirror.wire import transcode
from airmirror.wire.batch import Batch
from airmirror.wire.batches import parse
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Proxy, pass_on
from support.answers import FETCH, PRODUCE, Altered, alter
from support.faults import records
from support.flows import Mirror, mirror
from support.topics import produce, read_all

PER_BATCH, BATCHES = 37, 10
COUNT = PER_BATCH * BATCHES
PATHS = {"whole": {}, "slow": {"message.timestamp.type": "LogAppendTime"}}


def of_records(batch: Batch) -> bool:
    """A batch of the remote topic: whole, or what the slow path makes of all of them."""
    return batch.count in (PER_BATCH, COUNT)


def filled(east: Broker, west: Broker, directory: Path, path: str, through: Proxy | None = None) -> Mirror:
    flow = mirror(east, west, directory, config=PATHS[path], through=through and through.bootstrap)
    produce(east, flow.topic, records(COUNT), records_per_batch=PER_BATCH)
    return flow


def assert_found(flow: Mirror, match: str = "is not equal") -> None:
    """The difference is told, with the source's offsets, and nothing is committed."""
    [row] = flow.run().rows
    assert type(row.error).__name__ == "ReadBackDiffers" and match in str(row.error), row.error
    assert "offsets 0 to" in str(row.error) and not row.copied
    assert read_all(flow.target, flow.remote_topic)[0] == []


def assert_resumes(flow: Mirror) -> None:
    assert flow.run().is_verified
    assert flow.assert_equal() == COUNT


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("where", ["written", "returned"])
def test_a_byte_altered_between_here_and_there(
    east: Broker, west: Broker, west_proxy: Proxy, tmp_path: Path, path: str, where: str
) -> None:
    flow = filled(east, west, tmp_path, path, west_proxy)
    if where == "written":
        west_proxy.on_request = altered = Altered(PRODUCE, wanted=of_records)
    else:
        west_proxy.on_answer = altered = Altered(FETCH, wanted=of_records)
    assert_found(flow)
    assert altered.happened.is_set()
    west_proxy.on_request = west_proxy.on_answer = pass_on
    assert_resumes(flow)


@pytest.mark.parametrize("path", PATHS)
def test_a_byte_altered_on_the_targets_disk(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    flow = filled(east, west, tmp_path, path)
    drain = ReadBack.drain
    altered: list[Batch] = []

    def alter_first(self: ReadBack) -> None:
        if not altered and self._bytes:
            [file] = (west.directory / "data" / f"{flow.remote_topic}-0").glob("*.log")
            log = bytearray(file.read_bytes())
            altered.append(next(parse(memoryview(log), 0, len(log))))
            assert of_records(altered[0]), "byte 20 is one of its records"
            alter(log, altered[0], 20)
            with file.open("r+b") as there:
                there.write(log[: altered[0].size])
        drain(self)

    monkeypatch.setattr(ReadBack, "drain", alter_first)
    assert_found(flow)
    assert altered
    assert_resumes(flow)


def test_a_slow_path_that_writes_something_else(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it wrote would come back as it was written: it is compared with what was fetched before it is sent."""
    flow = filled(east, west, tmp_path, "slow")
    compress = transcode.compress

    def other(codec: int, payload: memoryview, level: int | None) -> object:
        data = bytearray(payload)
        data[20] ^= 1
        return compress(codec, bytes(data), level)

    with monkeypatch.context() as patch:
        patch.setattr(transcode, "compress", other)
        assert_found(flow, "the slow path did not write what was fetched")
    assert_resumes(flow)

"""Clocks that jump in mid-window, of the machine that runs it and of a broker: forwards, back, and right again."""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_exception_type, stop_after_delay

from airmirror.slot import source as source_module
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.intake import Intake
from airmirror.windows import fence
from airmirror.windows.errors import FlowBusy
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support.faults import a_process, await_killed, die_with_the_driver, filled, records
from support.flows import in_this_process
from support.needs import cc
from support.topics import produce

FAR = 3600.0  # seconds
JUMPS = (FAR, -FAR, 0.0)
LEASE_MS = 2000


def jumping(monkeypatch: pytest.MonkeyPatch, jump: Callable[[float], object]) -> list[float]:
    """Let ``jump`` set a clock whenever some records were taken in; how far it was off."""
    take, off = Intake.take, list[float]()

    def then_jump(self: Intake, *given: object) -> None:
        take(self, *given)  # type: ignore[arg-type]
        off.append(JUMPS[len(off) % len(JUMPS)])
        jump(off[-1])

    monkeypatch.setattr(Intake, "take", then_jump)
    monkeypatch.setattr(source_module, "FETCH_BYTES", 4096)
    monkeypatch.setattr(source_module, "LEAST_PARTITION_BYTES", 2048)
    return off


def test_the_clock_of_drivers_and_slots_jumps(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leases are judged by the broker's clock: no other window takes over meanwhile, and nothing waits for an hour."""
    flow, right, ahead = filled(east, west, tmp_path), time.time, [0.0]

    def with_another_meanwhile(slots: Sequence[Slot]) -> list[SlotResult]:
        with pytest.raises(FlowBusy):
            flow.run(window="second")
        return in_this_process(slots)

    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: right() + ahead[0])
        off = jumping(patch, lambda seconds: ahead.__setitem__(0, seconds))
        begun = time.monotonic()
        for jump in JUMPS:
            ahead[0] = jump
            produce(east, flow.topic, records(100, 1000))
            result = flow.run(with_another_meanwhile)
            assert result.is_verified and result.copied, [str(row.error) for row in result.rows]
    assert len(off) > len(JUMPS) and time.monotonic() - begun < FAR / 10
    assert flow.assert_equal() == 1200


@pytest.fixture
def jumping_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Broker, Path]]:
    """A broker, and the file that tells how far its clock is off."""
    library, file = tmp_path / "clock.so", tmp_path / "clock"
    source = Path(__file__).with_name("clock.c")
    subprocess.run([str(cc()), "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    file.write_bytes(struct.pack("d", 0.0))
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(library))
        patch.setenv("AIRMIRROR_CLOCK", str(file))
        broker = start_broker(tmp_path, "jumping", IMPATIENT)
    try:
        yield broker, file
    finally:
        broker.kill()


@pytest.mark.long
def test_the_clock_of_the_targets_broker_jumps(
    east: Broker, jumping_broker: tuple[Broker, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leases are judged by it. A window that runs resumes; after one that died an hour ahead, the next one waits for no hour."""
    west, file = jumping_broker
    flow, begun = filled(east, west, tmp_path), time.monotonic()

    def jump(seconds: float) -> None:
        with file.open("r+b") as there:
            there.write(struct.pack("d", seconds))

    with monkeypatch.context() as patch:
        off = jumping(patch, jump)
        for at_first in JUMPS:
            jump(at_first)
            produce(east, flow.topic, records(100, 1000))
            result = flow.run()
            assert result.is_verified and result.copied, [str(row.error) for row in result.rows]
    jump(FAR)
    produce(east, flow.topic, records(800, 2000), records_per_batch=50)
    its = (flow.opened.configuration, flow.flow, f"sqlite:///{tmp_path / 'own.db'}", LEASE_MS)
    await_killed(a_process(die_with_the_driver, *its))
    jump(0.0)
    monkeypatch.setattr(fence, "LEASE_MS", LEASE_MS)
    patiently = Retrying(retry=retry_if_exception_type(FlowBusy), stop=stop_after_delay(30), reraise=True)
    assert patiently(flow.run).is_verified
    assert off and time.monotonic() - begun < 120
    assert flow.assert_equal() == 2000

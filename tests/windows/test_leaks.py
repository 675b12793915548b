"""Windows in a row in one process leave neither sockets nor threads behind, failed ones too (`make soak`: 1,000, and memory)."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.slot.contract import Slot, SlotResult
from airmirror_local.brokers import Broker
from support.flows import mirror
from support.following import patiently
from support.hostile import append, batch, numbered


def held() -> tuple[int, int, int]:
    """Sockets, descriptors and threads of this process."""
    gc.collect()
    process = psutil.Process()
    return len(process.net_connections()), process.num_fds(), threading.active_count()


def fail(_slots: Sequence[Slot]) -> list[SlotResult]:
    raise BrokerUnreachable("east", "b:1", "it is only a test")


def test_windows_in_a_row_leave_nothing_behind(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    before = None
    for number in range(8):
        append(east, flow.topic, [batch(numbered(3))])
        assert flow.run().is_verified
        if number > 3:
            append(east, flow.topic, [batch(numbered(3))])
            with pytest.raises(BrokerUnreachable):
                flow.run(fail)
        if number == 3:  # what is loaded once is loaded by now
            before = held()
    assert before is not None
    for attempt in patiently():  # clients of tests before come and go in this process; what leaks stays
        with attempt:
            now = held()
            assert all(one <= other for one, other in zip(now, before, strict=True)), (before, now)

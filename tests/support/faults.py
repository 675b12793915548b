"""The common tools of fault tests: a flow in many small commits with work before it, and slots that die in a transaction."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.slot import copy as copy_module
from airmirror.slot.contract import Slot, SlotResult
from support.flows import Mirror, in_this_process, mirror
from support.topics import Cluster, Record, produce


def records(count: int, start: int = 0) -> list[Record]:
    return [Record(b"v%d" % n, b"k%d" % (n % 50), (), 1_700_000_000_000 + n) for n in range(start, start + count)]


def filled(
    east: Cluster,
    west: Cluster,
    directory: Path,
    count: int = 2000,
    *,
    settings: dict[str, str] | None = None,
    through: str | None = None,
    access: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> Mirror:
    """A flow with one verified window of 100 records behind it, and ``count`` more to copy, in many small commits."""
    many = {"window.commit.bytes": "2000"} | (settings or {})
    flow = mirror(east, west, directory, partitions=2, settings=many, through=through, access=access)
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    produce(east, flow.topic, records(count, 100), records_per_batch=50)
    return flow


def in_a_process_that_dies(slots: Sequence[Slot], commits: int) -> list[SlotResult]:
    """Run the slots in a process that kills itself with SIGKILL in its transaction after some ``commits``."""
    process = multiprocessing.get_context("fork").Process(target=die_after, args=(slots, commits))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    return []


def die_after(slots: Sequence[Slot], commits: int) -> None:
    left = [commits]
    end = TransactionalId.end

    def die(self: TransactionalId, commit: bool) -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)  # everything is written, nothing of it committed
        left[0] -= 1
        end(self, commit)

    TransactionalId.end = die  # type: ignore[method-assign]
    copy_module.FETCH_BYTES = 4096
    copy_module.LEAST_PARTITION_BYTES = 2048
    in_this_process(slots)

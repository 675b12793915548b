"""One partition's intake without clusters: it is given the bytes of fetches, and what it sends is collected."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from airmirror.config import parse
from airmirror.slot.contract import Slot, SlotPartition
from airmirror.slot.delivery import CopyContext
from airmirror.slot.intake import Intake
from airmirror.slot.outbox import Outbox
from airmirror.slot.refusals import Refusals
from airmirror.wire.merging import Merging
from airmirror.wire.requests import AbortedTransaction, Fetched

FLOW = parse(
    "clusters = east, west\neast.bootstrap.servers = x:1\nwest.bootstrap.servers = x:2\n"
    "east->west.enabled = true\neast->west.topics = orders\n",
    "test",
).flow("east->west")


class Collected(Outbox):
    """Takes the place of the outbox and of the transaction."""

    producer_id, epoch = 1, 0

    def __init__(self) -> None:
        self.transaction: Any = self
        self.put_in: list[Any] = []

    def sequence(self, target: object, count: int) -> int:
        return 0

    def put(self, outgoing: object) -> None:
        self.put_in.append(outgoing)


def intake(
    end: int, *, start: int = 0, compacted: bool = False, refusals: Refusals | None = None
) -> tuple[Intake, list[Any]]:
    """A partition's intake of source offsets in ``[start, end)``, and what it puts into the outbox."""
    partition = SlotPartition(
        topic="orders",
        partition=0,
        remote_topic="east.orders",
        start=start,
        end=end,
        source_topic_id=UUID(int=1),
        target_topic_id=UUID(int=2),
        target_end=-1,
        leader_epoch=-1,
        compacted=compacted,
        max_message_bytes=1 << 20,
    )
    slot = Slot(
        flow=FLOW,
        window="w",
        number=0,
        lease_offset=0,
        max_ms=0,
        max_bytes=None,
        progress_topic="p",
        progress_partitions=1,
        mapping_topic="s",
        partitions=(partition,),
    )
    outbox = Collected()
    context = CopyContext(slot=slot, target=None, transaction=outbox, outbox=outbox, read_back=None, merging=Merging())  # type: ignore[arg-type]
    return Intake(context, partition, end, refusals), outbox.put_in


def sent_offsets(sent: Iterable[Any]) -> list[int]:
    """The source offsets of the records that were put into the outbox."""
    runs = [run for each in sent for run in each.on_written.__self__.runs]
    return [first + number for first, count in runs for number in range(count)]


def at(offset: int, one: bytearray) -> bytearray:
    """The batch with another base offset."""
    struct.pack_into(">q", one, 0, offset)
    return one


def take(taker: Intake, *batches: bytes | bytearray, aborted: Sequence[AbortedTransaction] = ()) -> None:
    """Let it take an answer with these batches."""
    log = bytearray(b"".join(batches))
    taker.take(
        memoryview(log),
        Fetched(
            error=0,
            high_watermark=100,
            last_stable_offset=100,
            log_start_offset=0,
            aborted=aborted,
            start=0,
            end=len(log),
        ),
    )

"""Runs of small batches in a fetched buffer: found, checked and chosen by one call of compiled code (airmirror.native).

A run ends before the first batch that is anything but ordinary, whatever it is: damaged, large, of another codec or an old
format, past the end of what is wanted, after a hole that must not be. ``batches.parse`` continues there, and raises the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from airmirror.native.code import address, loops
from airmirror.native.layout import (
    ABORTED,
    AT,
    ATTRIBUTES,
    BASE_OFFSET,
    CHECKSUM,
    COLUMNS,
    CONTROLS,
    EPOCH,
    HOLES,
    LAST_DELTA,
    OFFSET,
    OPEN,
    PENDING,
    POSITION,
    SIZE,
    STATES,
)
from airmirror.wire.aborted import AbortedFilter
from airmirror.wire.batch import CODEC_MASK, Batch
from airmirror.wire.batches import HEADER
from airmirror.wire.merging import MERGED_BELOW, RUN_BYTES, RUN_RECORDS

_MOST_BATCHES = 1 << 14
_MOST_LEFT_OUT = 64  # batches at the end of a run
_LENGTH_END = 12  # of a batch's header: its length counts from there
_CASTAGNOLI = 0x82F63B78  # the polynomial of CRC-32C, its bits reversed


def _tables() -> np.ndarray[Any, Any]:
    """The eight tables of a CRC-32C that takes eight bytes at a time."""
    tables = np.zeros((8, 256), np.int64)
    tables[0] = np.arange(256)
    for _ in range(8):
        tables[0] = tables[0] >> 1 ^ np.where(tables[0] & 1, _CASTAGNOLI, 0)
    for number in range(1, 8):
        tables[number] = tables[0, tables[number - 1] & 255] ^ tables[number - 1] >> 8
    return tables.reshape(-1)


_TABLES = _tables()


@dataclass(frozen=True)
class Run:
    """Small batches that follow each other, and what else lies between them.

    ``table``: the batches to be copied, all of one codec, a row for each field of ``Batch``. ``stop``: where the run ends in
    the buffer; ``offset``: the log's next offset then. ``control``, ``aborted`` and ``holes`` are numbers of offsets.
    """

    table: np.ndarray[Any, Any]
    stop: int
    offset: int
    control: int
    aborted: int
    holes: int
    leader_epoch: int

    def __len__(self) -> int:
        return int(self.table.shape[1])

    @property
    def is_compressed(self) -> bool:
        return len(self) > 0 and bool(self.table[ATTRIBUTES, 0] & CODEC_MASK)

    def extent(self, first: int, end: int) -> tuple[int, int, int]:
        """The first offset of the batches and the one after their last, and how many of their offsets are in ``[first, end)``."""
        bases = self.table[BASE_OFFSET]
        afters = bases + self.table[LAST_DELTA] + 1
        first = max(first, int(bases[0]))
        offsets = np.minimum(afters, end) - np.maximum(bases, first)
        return first, int(afters[-1]), int(offsets.sum())

    def last_checksum(self, buffer: memoryview, start: int) -> int:
        """The checksum of the run's last batch; -1: what was left out at its end is too much to look through."""
        position, checksum = start, -1
        if len(self):
            position, checksum = int(self.table[[POSITION, SIZE], -1].sum()), int(self.table[CHECKSUM, -1])
        for _ in range(_MOST_LEFT_OUT):
            if position >= self.stop:
                return checksum
            _, length, _, _, checksum, *_ = HEADER.unpack_from(buffer, position)
            position += length + _LENGTH_END
        return -1

    def batches(self) -> Iterator[Batch]:
        """One by one: for those that a library of Python's must decompress."""
        return map(Batch._make, self.table.T.tolist())


def take_run(
    buffer: memoryview,
    start: int,
    end: int,
    *,
    offset: int,
    last: int,
    leader_epoch: int,
    may_lack: bool,
    aborted: AbortedFilter | None,
    below: Mapping[int, int] = MERGED_BELOW,
    most: int = RUN_BYTES,
) -> Run:
    """The run of small batches that begins at ``buffer[start]``, of which the offsets in ``[offset, last)`` are wanted.

    ``leader_epoch``: of the batch before; ``may_lack``: whether the log may have holes; ``aborted`` is None where the records
    of aborted transactions are wanted too, and reaches to the run's end; ``below``: the size by codec that no small batch has;
    ``most``: bytes of a run that has more than one batch.
    """
    table, pending, opened = (aborted or AbortedFilter()).table()
    state = np.zeros(STATES, np.int64)
    state[[AT, OFFSET, EPOCH, PENDING, OPEN]] = start, offset, leader_epoch, pending, opened
    sizes = np.array([below.get(codec, 0) for codec in range(CODEC_MASK + 1)], np.int64)
    found = np.empty((COLUMNS, min(_MOST_BATCHES, (end - start) // 61 + 1)), np.int64)
    rows = loops().find(
        address(np.frombuffer(buffer, np.uint8)),
        end,
        address(sizes),
        address(_TABLES),
        last,
        may_lack,
        address(table.reshape(-1)),
        address(found.reshape(-1)),
        found.shape[1],
        most,
        RUN_RECORDS,
        address(state),
    )
    if aborted is not None:
        aborted.resume(table, int(state[PENDING]), int(state[OPEN]))
    told = state.tolist()
    return Run(
        table=found[:, :rows],
        stop=told[AT],
        offset=told[OFFSET],
        control=told[CONTROLS],
        aborted=told[ABORTED],
        holes=told[HOLES],
        leader_epoch=told[EPOCH],
    )

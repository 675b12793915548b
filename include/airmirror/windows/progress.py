"""The progress of a window while its slots run, read from what they have committed to the mapping topic."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience, read_records
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.slot.lease import decoded_records
from airmirror.threads import BackgroundThread
from airmirror.windows.fence import GrantedLease
from airmirror.wire.mappings import MappingRecord

log = logging.getLogger(__name__)

EVERY_SECONDS = 2.0


@dataclass(frozen=True)
class CopyProgress:
    """The committed part of a window: source offsets of all planned ones, records, bytes, after this many seconds."""

    offsets: int
    planned: int
    records: int
    bytes: int
    seconds: float

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def summary(self) -> str:
        """The committed part, in words for a log."""
        return (
            f"{self.offsets:,} of {self.planned:,} offsets, {self.records:,} records, {self.bytes / 1e6:.1f} MB, "
            f"{self.rate:,.0f} records/s"
        )

    @property
    def seconds_left(self) -> float | None:
        """An estimate; None while nothing is committed."""
        return self.seconds * max(0, self.planned - self.offsets) / self.offsets if self.offsets else None


class Watch(BackgroundThread):
    """Tells the progress of a window every two seconds, in a thread of its own; a context manager."""

    def __init__(self, granted: GrantedLease, planned: int, report: Callable[[CopyProgress], None]) -> None:
        super().__init__(f"progress {granted.lease.window}")
        self._flow, self._window = granted.journal.flow, granted.lease.window
        self._planned, self._report = planned, report
        self._log = TopicPartition(granted.journal.topics.mappings, 0)
        self._position = granted.offset
        self._offsets = self._records = self._bytes = 0

    def __enter__(self) -> Self:
        self._begun = time.monotonic()
        return super().__enter__()

    def _run(self) -> None:
        while not self._ended.wait(EVERY_SECONDS):
            try:
                with Routes(self._flow.target, f"airmirror|{self._flow.name}|progress") as target:
                    while not self._ended.is_set():
                        self._look(target)
                        self._ended.wait(EVERY_SECONDS)
            except AirmirrorError as error:  # the slots see to the data; this only tells of it
                log.debug("the progress of window %s can't be shown: %s", self._window, error)

    def _look(self, target: Routes) -> None:
        end = offsets_with_patience(target, [self._log], LATEST, read_committed=True)[self._log]
        if self._position < end:
            before = self._offsets
            for _, record in decoded_records(read_records(target, self._log, self._position, end)):
                if isinstance(record, MappingRecord) and record.window == self._window:
                    self._offsets += record.source_end - record.source_start
                    self._records += record.copied
                    self._bytes += record.size
            self._position = end
            seconds = time.monotonic() - self._begun
            if self._offsets > before:  # a lease that is renewed is no news
                planned = max(self._planned, self._offsets)  # a window that follows has copied more than that
                self._report(CopyProgress(self._offsets, planned, self._records, self._bytes, seconds))

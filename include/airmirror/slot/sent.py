"""A batch on its way to the target."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from airmirror.clusters.protocol.error_codes import error_name
from airmirror.clusters.protocol.routes import TOPIC_DENIED
from airmirror.slot.account import Account
from airmirror.slot.errors import AccessLost, ReadBackDiffers
from airmirror.slot.readback import Expected
from airmirror.slot.refusals import WriteRefused
from airmirror.wire.requests import Produced

if TYPE_CHECKING:
    from airmirror.slot.intake import Intake


@dataclass(slots=True)
class Sent:
    """What to do when the target has given a batch an offset, or refused it; ``runs``: of source offsets (first, count)."""

    intake: Intake
    account: Account
    runs: list[tuple[int, int]]
    count: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    payload: memoryview
    digest: bytes

    def written(self, base: int) -> None:
        intake, account = self.intake, self.account
        intake.check_adjacent(account, base, self.count)
        account.written(self.runs, base)
        read_back = intake.way.read_back
        if read_back is None:
            account.digest.add(
                self.attributes, self.count, self.base_timestamp, self.max_timestamp, len(self.payload), self.digest
            )
            return
        read_back.expect(
            intake.partition.target,
            Expected(
                base, self.count, self.attributes, self.base_timestamp, self.max_timestamp, self.payload, self.digest,
                account.digest, self._differs, self._unread, intake.partition.keeps_times,
            ),
        )  # fmt: skip

    def refused(self, answer: Produced) -> Exception:
        slot, partition = self.intake.way.slot, self.intake.partition
        target = slot.flow.target.alias
        if answer.error == TOPIC_DENIED:
            where = (slot.flow.source.alias, partition.topic, partition.partition)
            return AccessLost(*where, target, partition.remote_topic, "Write")
        first, last = self.runs[0][0], sum(self.runs[-1]) - 1
        about = (first,) if self.count == 1 else tuple(_offsets(self.runs, answer.refused))
        return WriteRefused(
            slot.flow.source.alias, partition.topic, partition.partition, slot.flow.target.alias,
            partition.remote_topic, first, last, answer.error, answer.message or error_name(answer.error), about,
        )  # fmt: skip

    def late(self, reason: str) -> Exception:
        return self.intake.unavailable(reason)

    def _unread(self, code: int) -> Exception:
        if code == TOPIC_DENIED:
            slot, partition = self.intake.way.slot, self.intake.partition
            where = (slot.flow.source.alias, partition.topic, partition.partition)
            return AccessLost(*where, slot.flow.target.alias, partition.remote_topic, "Read")
        return self.intake.unavailable(f"it can't be read back ({error_name(code)})")

    def _differs(self, target_offset: int, difference: str) -> Exception:
        slot, partition = self.intake.way.slot, self.intake.partition
        return ReadBackDiffers(
            slot.flow.source.alias, partition.topic, partition.partition, slot.flow.target.alias,
            partition.remote_topic, self.runs[0][0], sum(self.runs[-1]) - 1, target_offset, difference,
        )  # fmt: skip


def _offsets(runs: Sequence[tuple[int, int]], numbers: Iterable[int]) -> Iterator[int]:
    """The source offsets of records by their number in ``runs`` (first offset, count), of those that there are."""
    ends = list(accumulate(count for _, count in runs))
    for number in numbers:
        if 0 <= number < ends[-1]:
            run = bisect_right(ends, number)
            yield sum(runs[run]) - (ends[run] - number)

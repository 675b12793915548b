"""The partitions in a failover: what is verified on the target, and what the source is known to have more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from airmirror.ledger import PartitionMetrics
from airmirror.ledger.recovery import complete_ms
from airmirror.ledger.state import State
from airmirror.offsets.replicated import Extent
from airmirror.partitions import CopyFacts, TopicPartition
from airmirror.wire.mappings import MappingRecord


@dataclass(frozen=True)
class PartitionPoint(CopyFacts):
    """One partition. Offsets are the source's, and each is the next one: after what is verified, committed, there at all.

    ``source_end`` is None where nobody knows it; it was read at ``seen_ms`` (epoch milliseconds). ``complete_ms``: up to this
    time all is verified on the target, None: not known. ``lost_on_target``: offsets that were verified and that the target does
    not have any more; -1: it can't be read.
    """

    verified_end: int
    committed_end: int
    source_end: int | None
    seen_ms: int | None
    complete_ms: int | None
    held: str
    lost_on_target: int

    @property
    def unverified(self) -> int:
        """Offsets that are committed on the target and that no gate has let pass yet."""
        return max(0, self.committed_end - self.verified_end)

    @property
    def missing(self) -> int | None:
        """Offsets that the source is known to have and that are not verified on the target; None: not known."""
        return None if self.source_end is None else max(0, self.source_end - self.verified_end)


def points(
    state: State,
    *,
    unverified: list[MappingRecord],
    shown: Mapping[TopicPartition, PartitionMetrics],
    seen_ms: int | None,
    live: Mapping[TopicPartition, Extent] | None,
    new: Mapping[str, str],
    oldest: Mapping[TopicPartition, int],
    target: Mapping[TopicPartition, Extent],
    now_ms: int,
    taken: Collection[str],
    ids: Mapping[str, UUID],
) -> list[PartitionPoint]:
    """One a partition that was replicated or that the source has (``live``; ``new``: source topics with their remote topics), by
    topic and partition. ``shown``, ``seen_ms``: what the ledger remembers of the source, all that is known where it can't be
    reached (``live`` None). ``oldest``: the timestamps of the oldest records of partitions that were never replicated.
    ``taken``: topics; of those that a failover leaves out, frozen by name or excluded since, no window sees the ends.
    ``ids``: the topics' own now: of one that was made again nothing is on the target.
    """
    first_unverified = dict[TopicPartition, int]()
    for record in unverified:
        first_unverified.setdefault(record.key, record.source_start)
    there = set(shown) if live is None else {key for key in live if key.topic in new}
    keys = {TopicPartition(*key) for key in state.known} | there
    found = []
    for key in sorted(each for each in keys if each.topic in taken):
        last, row, here = state.mappings.get(key), shown.get(key), (live or {}).get(key)
        began = here.start if here else max(0, row.high_watermark - row.lag_records) if row else 0
        is_other = here and last and last.source_topic_id != ids.get(key.topic)
        committed = began if is_other else state.positions.get(key, began)
        verified_end = committed if is_other else first_unverified.get(key, committed)
        source_end, seen, complete = _seen(row, here, verified_end, seen_ms, now_ms)
        complete = oldest.get(key) if complete is None else complete
        remote = last.remote_topic if last else new.get(key.topic, row.remote_topic if row else "")
        hold = state.holds.get(key)
        found.append(
            PartitionPoint(
                *key,
                remote_topic=remote,
                verified_end=verified_end,
                committed_end=committed,
                source_end=source_end,
                seen_ms=seen,
                complete_ms=complete,
                held=hold.reason if hold else "",
                lost_on_target=_lost(state, key, target.get(TopicPartition(remote, key.partition))),
            )
        )
    return found


def _seen(
    row: PartitionMetrics | None, here: Extent | None, verified_end: int, seen_ms: int | None, now_ms: int
) -> tuple[int | None, int | None, int | None]:
    """Return where the source ends, when that was read, and up to when all is verified."""
    if here is not None:
        is_complete = here.end <= verified_end
        return here.end, now_ms, now_ms if is_complete else row.verified_record_ms if row else None
    if row is None or row.high_watermark < 0:
        return None, None, row.verified_record_ms if row else None
    return row.high_watermark, row.seen_ms or seen_ms, complete_ms(row, seen_ms)


def _lost(state: State, key: TopicPartition, there: Extent | None) -> int:
    mark = state.verified.get(key)
    if mark is None:
        return 0
    return -1 if there is None else max(0, mark.target_end - there.end)

"""Rows of a flow's report, each from records of its mapping topic alone."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from airmirror.ledger import FlowLedger
from airmirror.partitions import TopicPartition, grouped
from airmirror.windows.coverage import COUNTS, account_error, has_returned, is_taken_over, uncovered
from airmirror.wire.mappings import MappingRecord

MOST_POINTS = 120  # of a curve


@dataclass(frozen=True)
class Span:
    """Epoch milliseconds from ``first_ms`` to ``end_ms``, the end not included; None: without that limit."""

    first_ms: int | None = None
    end_ms: int | None = None

    def holds(self, time_ms: int) -> bool:
        return (self.first_ms is None or time_ms >= self.first_ms) and (self.end_ms is None or time_ms < self.end_ms)


@dataclass(frozen=True)
class StatedRange:
    """The mapping topic's records of one partition of one source topic: ``chosen`` are those of the time asked for.

    ``verified``: the source offset after the last that the gate has let pass (0: none), ``by`` whose gate, ``at_ms`` when.
    """

    key: TopicPartition
    chosen: tuple[MappingRecord, ...]
    wrong: tuple[str, ...]
    is_newest: bool
    verified: int
    by: str
    at_ms: int | None
    held: str

    @property
    def is_proven(self) -> bool:
        return not (self.wrong or self.held) and self.verified >= self.chosen[-1].source_end

    @property
    def taken_over(self) -> int:
        """Records that another tool has copied: they were not compared."""
        return sum(each.copied for each in self.chosen if is_taken_over(each) and not has_returned(each))

    @property
    def returned(self) -> int:
        """Records that applications wrote on the target, and that were brought back."""
        return sum(each.copied for each in self.chosen if has_returned(each))

    def why(self) -> str:
        """Return why it is not proven, else empty."""
        found = [*self.wrong, *([f"held: {self.held}"] if self.held else [])]
        if self.verified < self.chosen[-1].source_end:
            found.append(f"offsets from {max(self.verified, self.chosen[0].source_start)} on are not verified yet")
        return "; ".join(found)

    @property
    def not_read_back(self) -> int:
        """Records that were copied by the flow and not read back: with window.verify=acks."""
        others = (each for each in self.chosen if not (each.was_read_back or is_taken_over(each) or has_returned(each)))
        return sum(each.copied for each in others)

    def row(self, left: int | None) -> dict[str, Any]:
        last = self.chosen[-1]
        passed = f"passed, but {self.not_read_back:,} records were not read back" if self.not_read_back else "verified"
        counts = {name: sum(getattr(each, name) for each in self.chosen) for name in COUNTS}
        return {
            "topic": self.key.topic,
            "partition": self.key.partition,
            "remote_topic": last.remote_topic,
            "verdict": passed if self.is_proven else "not proven",
            "why": self.why(),
            "source": ranges((each.source_start, each.source_end) for each in self.chosen),
            "target": ranges((each.target_start, each.target_end) for each in self.chosen if each.copied),
            **counts,
            "bytes": sum(each.size for each in self.chosen),
            "left": left,
            "verified_to": self.verified,
            "verified_by": self.by,
            "verified_ms": self.at_ms,
            "mapping_records": len(self.chosen),
            "sha256": digest(self.chosen),
            "source_topic_id": str(last.source_topic_id),
            "target_topic_id": str(last.target_topic_id),
            "first_ms": min(each.time_ms for each in self.chosen),
            "last_ms": max(each.time_ms for each in self.chosen),
        }


def told(ledger: FlowLedger, source: str, span: Span) -> Iterator[StatedRange]:
    """Yield every partition, and every topic of that name, of which something was committed in the time."""
    verified, holds, newest = ledger.verified(), ledger.holds(), ledger.last_mappings()
    for key, last in sorted(newest.items()):
        records = sorted(ledger.mappings(*key), key=lambda each: (str(each.source_topic_id), each.source_start))
        for topic_id, of_topic in groupby(records, key=lambda each: each.source_topic_id):
            whole = list(of_topic)
            chosen = tuple(each for each in whole if span.holds(each.time_ms))
            if not chosen:
                continue
            is_newest = topic_id == last.source_topic_id
            passed = verified.get(key)
            if passed is not None and passed.source_topic_id != topic_id:
                passed = None
            wrong = _wrong(source, chosen, uncovered(whole, chosen[0].source_start, chosen[-1].source_end))
            yield StatedRange(
                TopicPartition(*key),
                chosen,
                wrong,
                is_newest,
                verified=passed.offset + 1 if passed else 0,
                by=passed.window if passed else "",
                at_ms=passed.time_ms if passed else None,
                held=holds[key].reason if is_newest and key in holds else "",
            )


def cut_off(ledger: FlowLedger, found: Iterable[StatedRange], span: Span) -> list[MappingRecord]:
    """Return the oldest mapping records that are left of partitions of which the time may have had others, pruned by now."""
    newest = (*ledger.last_mappings().values(), *(each.chosen[-1] for each in found))
    oldest = ledger.first_mappings(list({(*each.key, each.source_topic_id) for each in newest}))
    return [each for each in oldest if each.source_start > 0 and each.time_ms > (span.first_ms or 0)]


def _wrong(source: str, chosen: Sequence[MappingRecord], gaps: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Return the errors in mapping records, and the offsets that none covers."""
    errors = (account_error(source, [each], compacted=True, start=None) for each in chosen)
    missing = (f"no mapping record covers the offsets {first} to {end - 1}" for first, end in gaps)
    return (*missing, *(str(error) for error in errors if error is not None))


def ranges(found: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Ranges in order, those that touch as one."""
    joined: list[list[int]] = []
    for first, end in found:
        if joined and joined[-1][1] == first:
            joined[-1][1] = end
        else:
            joined.append([first, end])
    return joined


def digest(records: Iterable[MappingRecord]) -> str:
    """SHA-256 over mapping records as the topic has them: of each the key and the value, either after its size (INT32).

    Without those that cover no offset: the next record of the partition takes their place.
    """
    found = hashlib.sha256()
    for record in (each for each in records if each.source_start < each.source_end):
        for part in (record.encode_key(), record.encode_value()):
            found.update(struct.pack(">i", len(part)) + part)
    return found.hexdigest()


def windows(found: Iterable[StatedRange]) -> list[dict[str, Any]]:
    """Return the commits of each window, the first first."""
    of_window = grouped((record.window, record) for each in found for record in each.chosen)
    rows = [
        {
            "window": name,
            "first_ms": min(each.time_ms for each in records),
            "last_ms": max(each.time_ms for each in records),
            "partitions": len({(each.topic, each.partition) for each in records}),
            "copied": sum(each.copied for each in records),
            "bytes": sum(each.size for each in records),
        }
        for name, records in of_window.items()
    ]
    return sorted(rows, key=lambda row: (row["first_ms"], row["window"]))


def progress(found: Iterable[StatedRange]) -> list[dict[str, Any]]:
    """Records copied so far, and the longest delay from a newest timestamp to its commit, over time: points of a curve."""
    records = sorted((record for each in found for record in each.chosen), key=lambda record: record.time_ms)
    if not records:
        return []
    first, width = records[0].time_ms, max(1, -(-(records[-1].time_ms - records[0].time_ms + 1) // MOST_POINTS))
    copied, rows = 0, []
    for _, bucket in groupby(records, key=lambda record: (record.time_ms - first) // width):
        of_bucket = list(bucket)
        copied += sum(each.copied for each in of_bucket)
        delays = [each.time_ms - each.max_timestamp for each in of_bucket if each.copied and each.max_timestamp >= 0]
        rows.append({"time_ms": of_bucket[-1].time_ms, "records": copied, "delay_ms": max(delays, default=None)})
    return rows

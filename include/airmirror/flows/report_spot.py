"""Checking a flow's report against its clusters: its digests against the mapping topic, and some records on both clusters."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.flows.prepare import Opened
from airmirror.flows.report import record_of
from airmirror.flows.report_rows import digest
from airmirror.windows.compare import compare, look_at_logs
from airmirror.windows.coverage import is_declared, is_taken_over, uncovered
from airmirror.windows.mirror import Mirror
from airmirror.wire.mappings import MappingRecord

MOST = 20  # mapping records whose records are read again


@dataclass(frozen=True)
class SpotCheck:
    """Counts of partitions whose digests agree, and of records that are equal now; what is wrong, and what can't be known."""

    partitions: int
    records: int
    wrong: tuple[str, ...]
    notes: tuple[str, ...]


def spot_check(opened: Opened, content: Mapping[str, Any], seed: str) -> SpotCheck:
    """Check a flow's report; ``seed`` chooses what is read again. A cluster's error is raised, what differs is in the answer."""
    wrong, notes, agreeing = list[str](), list[str](), list[MappingRecord]()
    partitions = 0
    with record_of(opened) as record:
        try:
            rows = [_row(each) for each in content["sections"]["partitions"]]
        except (LookupError, TypeError, ValueError, AttributeError):
            return SpotCheck(0, 0, ("its partitions make no sense: no report of Airmirror has such",), ())
        for topic, partition, topic_id, ranges, sha256 in rows:
            where = f"{topic}-{partition}"
            found = record.ledger.mappings(topic, partition)
            its = [each for each in found if str(each.source_topic_id) == topic_id and _is_within(each, ranges)]
            if any(True for first, end in ranges for _ in uncovered(its, first, end)):
                notes.append(
                    f"{where}: the mapping topic does not have all of it any more: retention.days may have pruned it"
                )
            elif digest(its) != sha256:
                wrong.append(
                    f"{where}: the mapping topic has other records: their SHA-256 is {digest(its)}, not {sha256}"
                )
            else:
                partitions += 1
                agreeing += [each for each in its if each.copied and not (is_taken_over(each) or is_declared(each))]
    chosen = random.Random(seed).sample(agreeing, min(MOST, len(agreeing)))
    records, differ, gone = _compared(opened, chosen)
    return SpotCheck(partitions, records, (*wrong, *differ), (*notes, *gone))


def _row(plain: Mapping[str, Any]) -> tuple[str, int, str, list[tuple[int, int]], str]:
    ranges = [(int(first), int(end)) for first, end in plain["source"]]
    return str(plain["topic"]), int(plain["partition"]), str(plain["source_topic_id"]), ranges, str(plain["sha256"])


def _is_within(record: MappingRecord, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= record.source_start and record.source_end <= end for first, end in ranges)


def _compared(opened: Opened, chosen: Sequence[MappingRecord]) -> tuple[int, list[str], list[str]]:
    """Records that are equal now on both clusters, those mapping records that differ, and those that are gone in part."""
    records, wrong, notes = 0, list[str](), list[str]()
    with Mirror.open(opened.flow, opened.ledger, "report") as mirror:
        logs = look_at_logs(mirror, chosen)
        ends = offsets_with_patience(mirror.source, {each.key for each in chosen}, LATEST)
        for each in sorted(chosen, key=lambda each: (each.topic, each.partition, each.source_start)):
            where = f"{each.topic}-{each.partition} offsets {each.source_start} to {each.source_end - 1}"
            if ends[each.key] < each.source_end:
                wrong.append(f"{where}: the source's log ends at {ends[each.key]} now")
                continue
            found = compare(logs, each)
            records += found.records
            if found.error is not None:
                wrong.append(f"{where}: {found.error}")
            elif found.gone:
                notes.append(
                    f"{where}: {found.gone:,} of {each.copied:,} records are gone: retention or compaction took them"
                )
    return records, wrong, notes

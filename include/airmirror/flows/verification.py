"""``airmirror verify``: both logs are read again, and every record that both still hold is compared.

What no mapping record covers is looked at too: records on the target that the flow did not write, and source offsets that
progress has passed although nothing tells what became of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.flows.reset import check_of_the_flow
from airmirror.partitions import CopyFacts, TopicPartition
from airmirror.rows import row_of
from airmirror.slot.adjacent import data_batches
from airmirror.slot.errors import ForeignRecords, TargetTruncated, TopicRecreated, of_flow
from airmirror.topics.names import select
from airmirror.windows.compare import Logs, compare, look_at_logs
from airmirror.windows.coverage import NOT_COVERED, account_error, is_declared, is_taken_over, uncovered
from airmirror.windows.errors import Unaccounted
from airmirror.windows.mirror import Mirror
from airmirror.wire.mappings import MappingRecord


@dataclass(frozen=True)
class ComparedPartition(CopyFacts):
    """One partition: records that were equal, that could no longer be compared, that are declared lost; what is wrong."""

    records: int
    expired: int
    lost: int
    errors: tuple[AirmirrorError, ...]

    @property
    def error(self) -> AirmirrorError | None:
        """The first of the errors."""
        return self.errors[0] if self.errors else None

    def as_dict(self) -> dict[str, Any]:
        error = "; ".join(map(str, self.errors)) or None
        return row_of(self, "topic partition remote_topic records expired lost") | {"error": error}


def compare_all(opened: Opened, topics: Sequence[str]) -> list[ComparedPartition]:
    """Compare every replicated partition of ``topics`` (all, when empty). Raises NotOfTheFlow, or a cluster's transient error.

    A window may be at work: what it commits after the beginning is left out. A partition that one side does not have any more is
    an error of its own; where nobody names its topic, and the flow does not replicate it any more or it is forgotten, it is none.
    """
    flow, ledger = opened.flow, opened.ledger
    catch_up_ledger(opened)
    with Mirror.open(flow, ledger, "verify") as mirror:
        before = ledger.last_mappings().values()
        gone = _gone(mirror, before)
        ends = _stable_ends(mirror.target, (last for last in before if last.key not in gone))
        catch_up_ledger(opened)  # all that lies below the ends is known now
        newest = {TopicPartition(*key): record for key, record in ledger.last_mappings().items()}
        chosen = {key: record for key, record in sorted(newest.items()) if not topics or key.topic in topics}
        check_of_the_flow(mirror, set(topics) - {key.topic for key in chosen})
        forgotten = ledger.state().forgotten
        expected = set(topics) or select(flow, {key.topic for key in gone if key not in forgotten})
        missing = [last for key, last in chosen.items() if key in gone and key.topic in expected]
        rows = [_not_compared(last, gone[last.key]) for last in missing]
        chosen = {key: last for key, last in chosen.items() if key not in gone}
        logs = look_at_logs(mirror, list(chosen.values()))
        progress, owners = ledger.progress(), ledger.owners()
        resets: dict[TopicPartition, set[int]] = {key: set() for key in chosen}
        for reset in ledger.resets():
            resets.get(reset.key, set()).update((reset.lost_first, reset.start))
        for key, last in chosen.items():
            rows.append(
                _compared(
                    logs=logs,
                    mappings=list(ledger.mappings(*key, last.source_topic_id)),
                    last=last,
                    progress=progress.get(key, -1),
                    end=ends.get(last.remote, last.target_end),
                    resets=resets[key],
                    is_ours=not (flow.is_aggregate or owners.why_frozen(key.topic)),
                )
            )
    return sorted(rows, key=lambda row: row.key)


def _gone(mirror: Mirror, records: Collection[MappingRecord]) -> dict[TopicPartition, TopicNotFound]:
    """The partitions that the source or the target does not have any more, or hides."""
    found: dict[TopicPartition, TopicNotFound] = {}
    for routes, there in (
        (mirror.target, {last.key: last.remote for last in records}),
        (mirror.source, {last.key: last.key for last in records}),
    ):
        missing = routes.refresh_existing({partition.topic for partition in there.values()})
        for key, partition in there.items():
            if partition.topic in missing:
                found[key] = missing[partition.topic]
            elif not routes.has(partition):
                found[key] = TopicNotFound(routes.alias, *partition)
    return found


def _not_compared(last: MappingRecord, error: AirmirrorError) -> ComparedPartition:
    return ComparedPartition(*last.key, last.remote_topic, records=0, expired=0, lost=0, errors=(error,))


def _stable_ends(target: Routes, records: Iterable[MappingRecord]) -> dict[TopicPartition, int]:
    remote = {record.remote for record in records}
    target.refresh({key.topic for key in remote})
    return offsets_with_patience(target, remote, LATEST, read_committed=True)


def _compared(
    logs: Logs,
    mappings: Sequence[MappingRecord],
    last: MappingRecord,
    progress: int,
    end: int,
    resets: Collection[int],
    *,
    is_ours: bool,
) -> ComparedPartition:
    """One partition. ``end``: of its remote log; ``resets``: source offsets where an operator has decided to resume, so that
    what the target holds before is accepted; ``is_ours``: nobody else is to write to its remote topic. To a frozen one
    applications may."""
    alias, key = logs.source.alias, last.key
    now = logs.source.topic_ids[last.topic]
    if now != last.source_topic_id:
        recreated = TopicRecreated(alias, *key, str(last.source_topic_id), str(now))
        of_flow(recreated, logs.flow)
        return _not_compared(last, recreated)
    records = expired = 0
    start = max([logs.starts[key][0], *(mapping.source_start for mapping in mappings[:1])])
    gaps = uncovered(mappings, start, max(last.source_end, progress + 1))
    errors: list[AirmirrorError | None] = [
        Unaccounted(alias, *key, first, stop - 1, NOT_COVERED) for first, stop in gaps
    ]
    before: MappingRecord | None = None
    accepted = False
    for mapping in mappings:
        if mapping.target_end > end:  # it was committed since the end was asked for, or the log was cut
            remote = last.remote
            now_end = _stable_ends(logs.target, [last])[remote]
            if mapping.target_end > now_end:
                errors.append(
                    TargetTruncated(alias, *key, logs.target.alias, last.remote_topic, mapping.target_end, now_end)
                )
            break
        accepted = accepted or mapping.source_start in resets or is_declared(mapping)
        after = before.target_end if before is not None and not accepted else None
        found = compare(logs, mapping, after=after)
        records, expired = records + found.records, expired + found.gone
        errors += [account_error(alias, [mapping], compacted=True, start=None), found.error]
        if found.error is not None:
            break
        if mapping.copied or mapping.source_start in resets or (before is None and mapping.target_end):
            before = mapping
        # What was lost, or what another writer left before a take-over, may lie up to the next record that has records.
        accepted = is_taken_over(mapping) or ((accepted or is_declared(mapping)) and not mapping.copied)
    else:
        if before is not None and is_ours:
            errors.append(_foreign(logs, before, end))
    lost = sum(mapping.lost for mapping in mappings)
    named = tuple(error for error in (of_flow(each, logs.flow) for each in errors) if error is not None)
    return ComparedPartition(
        *key, remote_topic=last.remote_topic, records=records, expired=expired, lost=lost, errors=named
    )


def _foreign(logs: Logs, last: MappingRecord, end: int) -> AirmirrorError | None:
    """Records on the target after the flow's last one."""
    batches = list(data_batches(logs.target, last.remote, last.target_end, end))
    if not batches:
        return None
    where = (logs.source.alias, last.topic, last.partition, logs.target.alias, last.remote_topic)
    return ForeignRecords(*where, max(batches[0].base_offset, last.target_end), batches[-1].next_offset - 1)

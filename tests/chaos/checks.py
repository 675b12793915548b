"""The checks at the end of a seed, whatever happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airmirror.flows.prepare import Opened, catch_up_ledger, read_again
from airmirror.flows.verification import compare_all
from chaos.producers import Written, number_of
from support.topics import Cluster, Record, assert_mirrored, end_offsets, read_all


def check(
    opened: Opened,
    source: Cluster,
    target: Cluster,
    topics: Mapping[str, str],
    written: Sequence[Written],
    *,
    begins: Mapping[tuple[str, int], int],
    before: int,
    exported: bool,
) -> int:
    """All of it; returns how many records are on both sides. Raises AssertionError.

    ``begins``: where mappings begin, if not at 0, with ``before`` records before that; ``exported``: whether every partition
    has its progress in mm2-offsets.
    """
    count = sum(assert_mirrored(source, topic, target, remote) for topic, remote in topics.items())
    copies = {
        (topic, number): log for topic, remote in topics.items() for number, log in read_all(target, remote).items()
    }
    for writer in written:
        check_numbers(writer, copies)
    catch_up_ledger(opened)
    check_accounts(opened, source, topics, begins, exported)
    rows = compare_all(opened, [])
    assert not [row.error for row in rows if row.error], [str(row.error) for row in rows]
    assert sum(row.records for row in rows) == count - before and not any(row.expired for row in rows)
    contents = opened.ledger.contents()
    read_again(opened)
    after = opened.ledger.contents()
    for table, content in contents.items():
        assert after[table] == content, f"the ledger's table {table} was rebuilt otherwise"
    return count


def check_numbers(writer: Written, copies: Mapping[tuple[str, int], Sequence[Record]]) -> None:
    """Order and completeness by the numbers that the producer gave, of logs that are as the source's. A record may be there
    twice: a plain producer has written it so, or a node that began to lead did not know an idempotent one's (seed 254)."""
    for partition, log in copies.items():
        numbers = [number_of(record) for record in log if record.key == writer.name.encode()]
        if writer.kind != "plain":
            once = numbers if writer.kind == "idempotent" else set(numbers)
            assert numbers == sorted(once), f"{writer.name} in {partition}: out of order, or twice"
        missing = set(writer.acknowledged.get(partition, ())) - set(numbers)
        assert not missing, f"{writer.name} in {partition}: acknowledged, not on the target: {sorted(missing)[:10]}"


def check_accounts(
    opened: Opened, source: Cluster, topics: Mapping[str, str], begins: Mapping[tuple[str, int], int], exported: bool
) -> None:
    """Invariants A, C, E, F and G: mappings follow each other from the beginning to the log's end, add up, and are verified."""
    ledger = opened.ledger
    assert not ledger.holds() and not ledger.unverified()
    progress, verified = ledger.progress(), ledger.verified()
    for topic in topics:
        for partition, end in end_offsets(source, topic, "read_committed").items():
            position, target_position = begins.get((topic, partition), 0), 0
            for record in ledger.mappings(topic, partition):
                assert record.source_start == position, f"{topic}-{partition}: a gap or an overlap at {position}"
                total = record.copied + record.control + record.aborted + record.holes + record.lost
                assert total == record.source_end - record.source_start and not record.holes and not record.lost
                for run in record.ranges:
                    assert run.target_first >= target_position, f"{topic}-{partition}: target offsets go back"
                    target_position = run.target_end
                position = record.source_end
            assert position == end, f"{topic}-{partition}: accounted up to {position}, the source ends at {end}"
            if end:
                assert verified[(topic, partition)].offset == end - 1
                recorded = progress.get((topic, partition))
                assert recorded == end - 1 or (recorded is None and not exported), (
                    f"{topic}-{partition}: {recorded}, {end}"
                )

"""The rows that the gate judges: one a partition, for the source offsets from its verified offset to its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Row = Mapping[str, object]

# Every column with its meaning; docs/expectations.md lists them for users.
COLUMNS: Mapping[str, str] = {
    "topic": "the source's topic",
    "partition": "the number of the partition, the same on both sides",
    "remote_topic": "the topic on the target",
    "source_start": "the first source offset of the range",
    "source_end": "the source offset after the range",
    "target_start": "the target offset of the first record",
    "target_end": "the target offset after the last record",
    "offsets": "source offsets in the range",
    "accounted": "source offsets that are accounted for: copied, control, aborted, holes, lost",
    "copied": "records that were copied",
    "target_records": "records that the target holds for the range, null where it was not read back (window.verify=acks)",
    "control": "control records (transaction markers), which are not copied",
    "aborted": "records of aborted transactions",
    "holes": "source offsets without a record",
    "unexpected_holes": "holes in a topic that is not compacted",
    "lost": "records that were declared lost",
    "bytes": "bytes of the record batches written",
    "gaps": "source offsets that no mapping record covers, or that two cover",
    "order_violations": "runs of records that lie before their predecessors on the target",
    "digest_differences": "mappings of which the target holds something else than was written, null as target_records",
    "lag_records": "records that the source has beyond the range",
    "lag_seconds": "the age of the newest copied record in seconds, 0 where nothing is left to copy",
    "max_timestamp": "the latest timestamp copied, in epoch milliseconds",
    "error": "what the engine's own checks found wrong, null where nothing is",
}

KEY = ("topic", "partition")
MEASURED = ("target_records", "digest_differences")  # null: not measured, which is not bad, but shown
NULLABLE = ("error", *MEASURED)


def partition_of(row: Row) -> tuple[str, int]:
    """The topic and partition that a row is about."""
    return str(row["topic"]), int(str(row["partition"]))


MOST_ROWS = 20
_SHOWN = ("topic", "partition", "source_start", "source_end", "copied", "target_records", "lag_records")


def table(rows: Sequence[Row], columns: Sequence[str] = _SHOWN) -> str:
    """Rows as aligned columns, at most twenty and how many more there are."""
    return aligned(columns, [[_text(row[column]) for column in columns] for row in rows], MOST_ROWS)


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]], most: int) -> str:
    """Columns under their names; of more than ``most`` rows, how many more there are."""
    lines = [columns, *rows[:most]]
    widths = [max(len(line[number]) for line in lines) for number in range(len(columns))]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*shown, *([f"… and {len(rows) - most} more"] if len(rows) > most else [])])


def _text(value: object) -> str:
    if value is None:
        return "not measured"
    return f"{value:,}" if isinstance(value, int) else str(value)

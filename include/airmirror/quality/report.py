"""Rows of the gate as plain text, for logs."""

from __future__ import annotations

from collections.abc import Sequence

from airmirror.quality.rows import Row

MOST_ROWS = 20
_SHOWN = ("topic", "partition", "source_start", "source_end", "copied", "target_records", "lag_records")


def table(rows: Sequence[Row], columns: Sequence[str] = _SHOWN) -> str:
    """Rows as aligned columns, at most twenty and how many more there are."""
    lines = [list(columns), *([_text(row[column]) for column in columns] for row in rows[:MOST_ROWS])]
    widths = [max(len(line[number]) for line in lines) for number in range(len(columns))]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    if len(rows) > MOST_ROWS:
        shown.append(f"… and {len(rows) - MOST_ROWS} more")
    return "\n".join(shown)


def _text(value: object) -> str:
    if value is None:
        return "not measured"
    return f"{value:,}" if isinstance(value, int) else str(value)

"""Progress and delay over time as inline SVG, of numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airmirror.times import utc

WIDTH, HEIGHT = 720, 150


def plot(rows: Sequence[Mapping[str, Any]]) -> str:
    """Curves of rows with ``time_ms``, ``records`` (so far) and ``delay_ms`` (None: not known)."""
    if len(rows) < 2:
        return "<p>Too little happened for a curve.</p>"
    records = [(row["time_ms"], row["records"]) for row in rows]
    delays = [(row["time_ms"], row["delay_ms"]) for row in rows if row["delay_ms"] is not None]
    curves = _curve("records copied so far", records, f"{max(value for _, value in records):,}")
    if len(delays) > 1:
        most = max(value for _, value in delays) / 1000
        curves += _curve("delay: from a record's timestamp to its commit", delays, f"{most:,.1f} s")
    return curves


def _curve(title: str, points: Sequence[tuple[int, int]], most: str) -> str:
    first, last = points[0][0], points[-1][0]
    top = max(1, *(value for _, value in points))
    width = max(1, last - first)
    line = " ".join(
        f"{WIDTH * (at - first) / width:.1f},{HEIGHT * (1 - max(0, value) / top):.1f}" for at, value in points
    )
    return (
        f"<p>{title}, at most {most}; {utc(first)} to {utc(last)}</p>"
        f'<svg role="img" aria-label="{title}" viewBox="0 -4 {WIDTH} {HEIGHT + 8}" width="{WIDTH}" height="{HEIGHT + 8}">'
        f'<path d="M0 {HEIGHT}H{WIDTH}" stroke="#d8dee4"/>'
        f'<polyline points="{line}" fill="none" stroke="#067647" stroke-width="2"/></svg>'
    )

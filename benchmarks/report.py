"""The tables: on the terminal with rich, in RESULTS.md as Markdown. Both come from the same rows."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil
from rich.box import SIMPLE_HEAD
from rich.table import Table

from airmirror_local.jars import KAFKA_VERSION
from benchmarks.data import DENSE_100, DENSE_1000, ONE_A_BATCH, TEN_A_BATCH
from benchmarks.measurements import Measurement, Target, processor_ratio, rate_ratio, targets

MIB = 1 << 20
PROBLEMS = "What went wrong"


@dataclass(frozen=True)
class Grid:
    """A table: a title, a line that explains it, column heads, rows of text."""

    title: str
    note: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def on_terminal(self) -> Table:
        table = Table(title=self.title, title_justify="left", box=SIMPLE_HEAD, header_style="bold")
        for number, head in enumerate(self.heads):
            table.add_column(head, justify="left" if number < 1 else "right")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", self.note, "", _line(self.heads), _line(["---"] * len(self.heads))]
        return "\n".join([*lines, *map(_line, self.rows)]) + "\n"


@dataclass
class Findings:
    """Everything that a run measured."""

    runs: dict[str, dict[str, list[Measurement]]] = field(default_factory=dict)  # by data label and what was measured
    shapes: dict[str, tuple[float, float]] = field(default_factory=dict)  # records and bytes of a batch
    empty_windows: list[float] = field(default_factory=list)  # seconds of the whole command
    growth_bytes: list[tuple[int, int, float, float]] = field(
        default_factory=list
    )  # bytes, records, window s, command s
    growth_partitions: list[tuple[int, float, float]] = field(default_factory=list)  # partitions, first, later window
    slot_peaks: list[tuple[str, float]] = field(default_factory=list)  # label, bytes; one a run
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    others: float = 0.0  # share of the machine's processor time that other programs took meanwhile

    @property
    def results(self) -> dict[str, dict[str, Measurement]]:
        """Of each the run with the median rate; of an even number the slower of the two."""
        return {
            label: {
                what: sorted(runs, key=lambda run: run.rate)[(len(runs) - 1) // 2] for what, runs in of_label.items()
            }
            for label, of_label in self.runs.items()
        }


def grids(found: Findings) -> list[Grid]:
    return [
        grid
        for grid in (_targets(found), _rates(found), _bytes(found), _partitions(found), _memory(found))
        if grid.rows
    ]


def results_md(found: Findings, scale: float) -> str:
    """RESULTS.md as a whole."""
    parts = [
        "# Airmirror and MirrorMaker 2, measured side by side\n",
        f"Written by `make bench` (scale {scale:g}) in {found.seconds / 60:.0f} minutes. {_machine(found.others)}\n",
        "Programs write this file, and write over it: what people make of the figures is in [README.md](README.md).\n",
        f"Brokers, Spark, Airmirror and MirrorMaker 2 {KAFKA_VERSION} all run on this machine and share its cores, so the "
        "brokers' own work is part of every figure. Brokers have one node unless told otherwise, Kafka's default JVM "
        "options, topics of 4 partitions, no compression. Airmirror runs as `airmirror run-window` against a warm Spark "
        "Connect server; its rate is that of the whole window (lease to verified), its processor time that of the command "
        "from start to end and of Spark's processes. MirrorMaker 2's rate and processor time are its steady ones: start and "
        "warm-up are left out. The engine's own checks judge (`--no-expectations`): MirrorMaker 2 judges nothing.\n",
        *[grid.markdown() for grid in grids(found)],
    ]
    if found.problems:
        parts += [f"## {PROBLEMS}\n", *[f"- {problem}" for problem in found.problems], ""]
    return "\n".join(parts)


def _targets(found: Findings) -> Grid:
    labels = (DENSE_100.label, DENSE_1000.label, TEN_A_BATCH.label, ONE_A_BATCH.label)
    rows = targets(found.results, *labels)
    peak = max((size for _, size in found.slot_peaks), default=None)
    empty = max(found.empty_windows, default=None)
    rows.append(
        Target(
            "any",
            "memory of a slot (VmHWM of its process), largest",
            peak and peak / MIB,
            256,
            least=False,
            unit=" MiB",
        )
    )
    rows.append(Target("any", "window with nothing to copy, whole command, slowest", empty, 3, least=False, unit=" s"))
    later = {partitions: seconds for partitions, _, seconds in found.growth_partitions}
    more = later[1000] - later[4] if 4 in later and 1000 in later else None
    rows.append(Target("any", "1,000 mostly idle partitions, more than 4", more, 3, least=False, unit=" s"))
    grid = Grid("Targets", "A miss is measured like a hit.", ("data", "what", "to reach", "measured", ""))
    for row in rows:
        measured = "" if row.measured is None else _target_figure(row, row.measured)
        wanted = f"{'≥' if row.least else '≤'} {_target_figure(row, row.wanted)}"
        grid.rows.append((row.data, row.what, wanted, measured, row.verdict))
    return grid


def _target_figure(target: Target, value: float) -> str:
    if "share" in target.what:
        return f"{value:.0%}"
    return f"{value:.0f}{target.unit}" if target.unit == " MiB" else f"{value:.3g}{target.unit}"


def _rates(found: Findings) -> Grid:
    note = (
        "Ratios are against tuned MirrorMaker 2 on the same topic. Processor time is the client side's, a record; "
        "× less is MirrorMaker 2's divided by ours. Of several runs, every other one in the opposite order and each after "
        "`sync` and a pause, this is the one with the median rate; the spread is from the slowest to the fastest."
    )
    heads = ("data", "what", "records", "seconds", "records/s", "spread", "ratio", "µs/record", "× less")
    grid = Grid("Rates", note, heads)
    for label, measured in found.results.items():
        records, size = found.shapes.get(label, (0.0, 0.0))
        shown = f"{label} (batches of {records:,.0f}, {size / 1000:,.1f} kB)" if records else label
        for what, one in measured.items():
            used = one.processor_microseconds
            grid.rows.append(
                (
                    shown,
                    what,
                    f"{one.records:,}",
                    f"{one.seconds:.1f}",
                    f"{one.rate:,.0f}",
                    _spread(found.runs[label][what]),
                    _times(rate_ratio(measured, what)),
                    "" if used is None else f"{used:.2f}",
                    _times(processor_ratio(measured, what)),
                )
            )
    return grid


def _spread(runs: Sequence[Measurement]) -> str:
    rates = [run.rate for run in runs]
    return f"{min(rates):,.0f} – {max(rates):,.0f} of {len(rates)}" if len(rates) > 1 else ""


def _bytes(found: Findings) -> Grid:
    grid = Grid(
        "A window's time by bytes",
        "One topic, acks, windows cut by `window.max.bytes`.",
        ("bytes", "records", "window s", "command s", "MB/s"),
    )
    for size, records, seconds, command in found.growth_bytes:
        grid.rows.append(
            (
                f"{size / 1e6:,.0f} MB",
                f"{records:,}",
                f"{seconds:.2f}",
                f"{command:.2f}",
                f"{size / 1e6 / seconds:,.0f}",
            )
        )
    return grid


def _partitions(found: Findings) -> Grid:
    grid = Grid(
        "A window's time by partitions",
        "Four partitions have 1,000 new records each, the others none. Seconds of the whole command: of the flow's first "
        "window, which also makes the remote topic, and of a later one.",
        ("partitions", "first window s", "later window s"),
    )
    for partitions, first, later in found.growth_partitions:
        grid.rows.append((f"{partitions:,}", f"{first:.2f}", f"{later:.2f}"))
    return grid


def _memory(found: Findings) -> Grid:
    note = "The kernel's high-water mark (VmHWM) of the Python worker that runs a slot, interpreter and libraries included."
    grid = Grid("Memory of a slot", note, ("windows", "peak MiB"))
    largest: dict[str, float] = {}
    for label, size in found.slot_peaks:
        largest[label] = max(size, largest.get(label, 0))
    grid.rows.extend((label, f"{size / MIB:,.0f}") for label, size in largest.items())
    return grid


def _machine(others: float) -> str:
    memory = psutil.virtual_memory().total / 2**30
    beside = (
        f"Other programs ran beside it and took {others:.0%} of the machine's processor time, which lowers and blurs the figures."
        if others > 0.03
        else "Nothing else of weight ran beside it."
    )
    return (
        f"Machine: {os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GB memory, {platform.system()}, "
        f"Python {platform.python_version()}. {beside}"
    )


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"

"""Windows up to the ends of ranges, one after the other, for audits and replays: on Spark Connect and by spark-submit alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from airmirror.flows.audit import Range
from airmirror.flows.backfill import backfill, before_the_first
from airmirror.flows.prepare import Opened, Prepared, backfill_of
from airmirror.on_spark.windows import on_spark, run
from airmirror.partitions import TopicPartition
from airmirror.windows.progress import CopyProgress
from airmirror.windows.results import WindowResult


def at_once(work: Callable[[], WindowResult | None]) -> WindowResult | None:
    """Without waiting where another window of the flow is at work."""
    return work()


def run_ranges(
    prepared: Prepared,
    spark_url: str | None,
    window: str,
    ranges: Sequence[Range],
    *,
    before: bool,
    only: Callable[[TopicPartition], bool],
    done: Callable[[WindowResult], None],
    patiently: Callable[[Callable[[], WindowResult | None]], WindowResult | None] = at_once,
    tell: Callable[[str], None] = lambda phase: None,
    report: Callable[[CopyProgress], None] = lambda progress: None,
) -> WindowResult:
    """Replicate, in order, what lies beyond progress up to the ends of ``ranges``; nothing of other partitions. Not judged.

    In as many windows as it takes: ``window``, ``window-2``, … ``before``: also what lies before the first replicated offset,
    into topics of its own, where the flow wants that. ``done`` hears of every window and may raise; ``patiently`` calls what
    needs the flow's lease. Raises what ``run`` and ``backfill`` raise.
    """
    ends = {item.key: item.end for item in ranges}
    number, name = 1, window
    while True:
        one = partial(run, prepared, spark_url, name, only=only, until=ends, advance=False, tell=tell, report=report)
        result = patiently(one)
        assert result is not None
        done(result)
        if not result.is_cut or any(row.failed for row in result.rows):
            break
        number, name = number + 1, f"{window}-{number + 1}"
    if before:
        _before(
            opened=prepared.opened,
            spark_url=spark_url,
            window=window,
            ranges=ranges,
            done=done,
            patiently=patiently,
            tell=tell,
        )
    return result


def _before(
    opened: Opened,
    spark_url: str | None,
    window: str,
    ranges: Sequence[Range],
    done: Callable[[WindowResult], None],
    patiently: Callable[[Callable[[], WindowResult | None]], WindowResult | None],
    tell: Callable[[str], None],
) -> None:
    if backfill_of(opened) is None:
        return
    parts, number = before_the_first(opened, ranges), 0
    with on_spark(opened, spark_url, tell) as (slots, execute):
        while parts:
            number += 1
            name = f"{window}-before-{number}"
            result = patiently(partial(backfill, opened, parts, execute, slots, window=name, tell=tell))
            if result is None:
                tell("what lies before the first replicated offset was replicated before")
                return
            done(result)
            if not result.is_cut:
                return


def write_ranges(path: Path, ranges: Sequence[Range]) -> None:
    """As a file for ``read_ranges``."""
    path.write_text(json.dumps([[item.topic, item.partition, item.start, item.end] for item in ranges]))


def read_ranges(path: Path) -> list[Range]:
    """Read the ranges that ``write_ranges`` has written."""
    return [
        Range(str(topic), int(number), int(start), int(end))
        for topic, number, start, end in json.loads(path.read_text())
    ]

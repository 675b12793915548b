"""Windows up to the ends of ranges, one after the other, for audits and replays: on Spark Connect and by spark-submit alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

from airmirror.flows.audit import Range
from airmirror.flows.backfill import backfill, before_the_first
from airmirror.flows.prepare import Opened, Prepared, backfill_of
from airmirror.on_spark.windows import on_spark, run
from airmirror.windows.results import WindowResult
from airmirror.windows.window import WindowOrder

Patiently = Callable[[Callable[[], WindowResult | None]], WindowResult | None]


def run_ranges(
    prepared: Prepared,
    spark_url: str | None,
    order: WindowOrder,
    ranges: Sequence[Range],
    *,
    before: bool,
    done: Callable[[WindowResult], None],
    patiently: Patiently = lambda work: work(),  # without waiting for another window of the flow
) -> WindowResult:
    """Replicate, in order, what lies beyond progress up to the ends of ``ranges``; nothing of other partitions. Not judged.

    In as many windows as it takes: that of the order, ``…-2``, ``…-3``. ``before``: also what lies before the first replicated
    offset, into topics of its own, where the flow wants that. ``done`` hears of every window and may raise; ``patiently`` calls
    what needs the flow's lease. Raises what ``run`` and ``backfill`` raise.
    """
    one, number = replace(order, until={item.key: item.end for item in ranges}, advance=False), 1
    while True:
        result = patiently(partial(run, prepared, spark_url, one))
        assert result is not None
        done(result)
        if not result.is_cut or any(row.failed for row in result.rows):
            break
        number += 1
        one = replace(one, window=f"{order.window}-{number}")
    if before:
        _before(prepared.opened, spark_url, order, ranges, done=done, patiently=patiently)
    return result


def _before(
    opened: Opened,
    spark_url: str | None,
    order: WindowOrder,
    ranges: Sequence[Range],
    *,
    done: Callable[[WindowResult], None],
    patiently: Patiently,
) -> None:
    if backfill_of(opened) is None:
        return
    parts = before_the_first(opened, ranges)
    with on_spark(opened, spark_url, order.tell) as (slots, execute):
        for number in count(1) if parts else ():
            one = WindowOrder(f"{order.window}-before-{number}", slots=slots, tell=order.tell)
            result = patiently(partial(backfill, opened, parts, execute, one))
            if result is None:
                order.tell("what lies before the first replicated offset was replicated before")
                return
            done(result)
            if not result.is_cut:
                return


def as_text(ranges: Sequence[Range]) -> str:
    """The text of a file for ``read_ranges``."""
    return json.dumps([[item.topic, item.partition, item.start, item.end] for item in ranges])


def read_ranges(path: Path) -> list[Range]:
    return [
        Range(str(topic), int(number), int(start), int(end))
        for topic, number, start, end in json.loads(path.read_text())
    ]

"""Tables for people, plain values for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.filesize import decimal
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from airmirror.config.explain import KeyRow, ValueRow
from airmirror.flows.status import FlowStatus
from airmirror.flows.verification import ComparedPartition
from airmirror.offsets.latency import Latency
from airmirror.topics.remote import TopicPlan
from airmirror.topics.sync import SyncReport
from airmirror.windows.plan import Planned
from airmirror.windows.progress import Progress
from airmirror.windows.results import Row, WindowResult
from airmirror.wire.segments import Decision, Hold

MOST_ROWS = 200


def print_json(console: Console, value: object) -> None:
    """JSON for programs. Colours are for terminals only: rich takes seconds for the rows of 10,000 partitions."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if console.is_terminal:
        console.print_json(text)
    else:
        console.file.write(f"{text}\n")


def _table(title: str, *columns: str, right: Iterable[str] = ()) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        number = column in right
        short = number or column in ("topic", "window", "verified")
        table.add_column(column, justify="right" if number else "left", overflow="fold", no_wrap=short)
    return table


def window(result: WindowResult) -> Table:
    """A window's partitions: what was copied from where to where, and whether it is verified. Ranges are [first, end)."""
    rate = f"{result.copied / result.seconds:,.0f} records/s" if result.copied else "nothing new"
    title = (
        f"{result.flow}: {result.copied:,} records, {decimal(result.bytes)} in {result.seconds:.1f} s ({rate}), "
        f"{result.partitions} partitions"
    )
    numbers = ("partition", "source range", "target range", "records", "bytes", "rate/s", "lag")
    table = _table(title, "topic", *numbers, "verified", right=numbers)
    took = result.phases.get("copy", 0.0) or result.seconds
    for row in result.rows[:MOST_ROWS]:
        table.add_row(
            row.topic,
            str(row.partition),
            f"{row.source_start:,}–{row.source_end:,}",
            f"{row.target_start:,}–{row.target_end:,}" if row.copied else "",
            f"{row.copied:,}",
            decimal(row.bytes),
            f"{row.copied / took:,.0f}",
            f"{row.lag:,}",
            _verified(row.verified and row.error is None, row.read_back),
        )
    if len(result.rows) > MOST_ROWS:
        table.caption = f"{len(result.rows) - MOST_ROWS} more rows: use --json"
    return table


def runs(results: Sequence[WindowResult]) -> Table:
    """One row a window, by the name of the run that it belongs to."""
    numbers = ("partitions", "records", "bytes", "seconds")
    table = _table("Airflow's runs that replicated something", "run", *numbers, "verified", right=numbers)
    for result in results:
        table.add_row(
            result.window, str(len(result.rows)), f"{result.copied:,}", decimal(result.bytes), f"{result.seconds:.1f}",
            _verified(result.is_verified, result.is_read_back),
        )  # fmt: skip
    return table


def _verified(passed: bool, read_back: bool) -> str:
    """With window.verify=acks nobody has seen what the target holds, whatever has passed."""
    if not passed:
        return "[red]no[/]"
    return "[green]yes[/]" if read_back else "[yellow]not read back[/]"


def progress(state: Progress) -> str:
    """What is committed of a window that runs."""
    left = "" if state.seconds_left is None else f", {state.seconds_left:.0f} s left"
    return (
        f"{state.offsets / max(1, state.planned):.0%} committed: {state.records:,} records, {decimal(state.bytes)}, "
        f"{state.rate:,.0f} records/s{left}"
    )


def problems(result: WindowResult, refused: Sequence[str]) -> Iterator[str]:
    """What went wrong, and what to do."""
    for row in result.rows:
        if row.lost:
            yield f"[yellow]lost[/] {row.topic}-{row.partition}: {row.lost:,} records that the target does not take"
        if row.error is not None:
            yield f"[red]{row.outcome}[/] {row.error}"
    for reason in refused:
        yield f"[red]refused[/] {reason}"
    if result.is_cut:
        yield "The window was cut (window.max.ms or window.max.bytes): the next one continues."


def window_json(result: WindowResult, refused: Sequence[str], topics: SyncReport) -> dict[str, Any]:
    return {
        "flow": result.flow, "window": result.window, "records": result.copied, "bytes": result.bytes,
        "partitions": result.partitions, "seconds": round(result.seconds, 3), "cut": result.is_cut,
        "verified": _measured(result.is_verified and not refused, result.is_read_back), "refused": list(refused),
        "changes": list(topics.changes), "notes": list(topics.notes), "warnings": list(topics.warnings),
        "phases": {name: round(seconds, 3) for name, seconds in result.phases.items()},
        "rows": [_row_json(row) for row in result.rows],
    }  # fmt: skip


def _measured(passed: bool, read_back: bool) -> bool | None:
    """None: it has passed, but nobody has read the target (window.verify=acks)."""
    return passed if read_back or not passed else None


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "topic": row.topic, "partition": row.partition, "remote_topic": row.remote_topic,
        "source": [row.source_start, row.source_end], "target": [row.target_start, row.target_end],
        "copied": row.copied, "control": row.control, "aborted": row.aborted, "holes": row.holes,
        "lost": row.lost, "bytes": row.bytes,
        "lag": row.lag, "verified": _measured(row.verified, row.read_back), "outcome": str(row.outcome),
        "error": str(row.error) if row.error else None,
    }  # fmt: skip


def plan(topics: TopicPlan, planned: Sequence[Planned]) -> Group:
    """What a window would do: topics first, then offsets."""
    changes = _table("remote topics", "topic", "what")
    for new in topics.create:
        changes.add_row(new.name, f"create with {new.partitions} partitions")
    for more in topics.grow:
        changes.add_row(more.name, f"from {more.before} to {more.partitions} partitions")
    for change in topics.configs:
        after = "the cluster's default" if change.after is None else change.after
        changes.add_row(change.topic, f"{change.key} from {change.before} to {after}")
    for acl in topics.acls:
        changes.add_row(acl.topic, f"create ACL: {acl}")
    for refused in topics.refused:
        changes.add_row(refused.topic, f"[red]refused[/] {refused.reason}")
    for note in topics.notes:
        changes.add_row("", note)
    numbers = ("partition", "from", "to", "offsets")
    offsets = _table("offsets to replicate", "topic", *numbers, "", right=numbers)
    for item in planned:
        if item.has_work or item.error:
            offsets.add_row(
                item.topic, str(item.partition), f"{item.start:,}", f"{item.end:,}", f"{item.end - item.start:,}",
                str(item.error or ""),
            )  # fmt: skip
    return Group(changes, offsets)


def plan_json(topics: TopicPlan, planned: Sequence[Planned]) -> dict[str, Any]:
    return {
        "create": {new.name: new.partitions for new in topics.create},
        "grow": {more.name: more.partitions for more in topics.grow},
        "configs": [asdict(change) for change in topics.configs],
        "acls": [asdict(acl) for acl in topics.acls],
        "refused": [str(refused) for refused in topics.refused],
        "notes": list(topics.notes),
        "warnings": list(topics.warnings),
        "partitions": [
            {
                "topic": item.topic, "partition": item.partition, "remote_topic": item.remote_topic,
                "start": item.start, "end": item.end, "error": str(item.error) if item.error else None,
            }
            for item in planned
        ],
    }  # fmt: skip


def comparison(rows: Sequence[ComparedPartition]) -> Table:
    """What ``verify`` found."""
    numbers = ("partition", "equal records", "expired", "lost")
    table = _table("both logs compared", "topic", *numbers, "difference", right=numbers)
    for row in rows:
        problem = f"[red]{row.error}[/]" if row.error else "[green]none[/]"
        table.add_row(row.topic, str(row.partition), f"{row.records:,}", f"{row.expired:,}", f"{row.lost:,}", problem)
    return table


def status(item: FlowStatus) -> Group:
    """Where a flow stands."""
    numbers = ("topics", "partitions", "behind", "lag", "unverified", "held")
    table = _table("flows", "flow", *numbers, right=numbers)
    counts = (item.topics, item.partitions, item.behind, item.lag, item.unverified, len(item.held))
    table.add_row(item.flow, *(f"{count:,}" for count in counts))
    last = _table(
        "last windows", "window", "ended", "partitions", "records", "bytes", right=("partitions", "records", "bytes")
    )
    for row in item.windows:
        last.add_row(row.window, _time(row.last_ms), str(row.partitions), f"{row.copied:,}", decimal(row.bytes))
    tables = [table, last, *([latency(item.latency)] if item.latency else [])]
    wrong = [f"[red]held[/] {name}: {reason}" for name, reason in item.held.items()]
    wrong += [f"[red]error[/] {reason}" for reason in item.errors.values()]
    return Group(*tables, *wrong)


def latency(rows: Sequence[Latency]) -> Table:
    """How long heartbeats took, of the last window that had any: the quickest, the mean, the slowest."""
    numbers = ("flows", "heartbeats", "until readable (s)", "until verified (s)", "newest is old (s)")
    table = _table("end-to-end latency", "heartbeats of", *numbers, right=numbers)
    for row in rows:
        spreads = (f"{each.least:.1f} / {each.mean:.1f} / {each.most:.1f}" for each in (row.readable, row.verified))
        table.add_row(row.origin, str(row.hops), f"{row.heartbeats:,}", *spreads, f"{row.age_seconds():.1f}")
    return table


def holds(found: Sequence[Hold]) -> Table:
    """What is held."""
    numbers = ("partition", "from offset")
    table = _table("held partitions", "topic", *numbers, "by", "since", "reason", right=numbers)
    for hold in found:
        table.add_row(hold.topic, str(hold.partition), f"{hold.offset:,}", hold.by, _time(hold.time_ms), hold.reason)
    return table


def decisions(found: Sequence[Decision]) -> Table:
    """Who has decided what."""
    numbers = ("partition", "at offset")
    table = _table("decisions", "topic", *numbers, "what", "by", "when", "reason", right=numbers)
    for decision in found:
        table.add_row(
            decision.topic, str(decision.partition), f"{decision.offset:,}", decision.action.name.lower(), decision.by,
            _time(decision.time_ms), decision.reason,
        )  # fmt: skip
    return table


def plain(found: Sequence[Hold] | Sequence[Decision]) -> list[dict[str, Any]]:
    """Holds or decisions as plain values; an action by its name."""
    rows = [asdict(record) for record in found]
    return [row | ({"action": row["action"].name.lower()} if "action" in row else {}) for row in rows]


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def keys(rows: Sequence[KeyRow], clients: Sequence[KeyRow]) -> Group:
    """Every key of the configuration, then the settings of Kafka's clients by what they do here."""
    shown: list[RenderableType] = []
    for row in rows:
        kind = f"  {row.type}, default: {row.default or 'none'}" if row.type else ""
        shown.append(Text.assemble((row.name, "bold"), (kind, "dim")))
        shown.append(Padding(Text(f"{row.doc}\nRead {row.scope.removesuffix('.')}. Here: {row.here}."), (0, 0, 0, 4)))
    for here in dict.fromkeys(row.here for row in clients):
        names = ", ".join(row.name for row in clients if row.here == here)
        shown.append(Text.assemble(("Kafka's client settings", "bold"), (f"  {here}", "dim")))
        shown.append(Padding(Text(names), (0, 0, 0, 4)))
    return Group(*shown)


def values(flow: str, enabled: bool, rows: Sequence[ValueRow]) -> Table:
    """What counts for a flow."""
    table = _table(f"{flow} ({'enabled' if enabled else 'not enabled'})", "key", "value", "from")
    for row in rows:
        table.add_row(row.key, row.value, row.origin)
    return table

"""Tables and lines for people, by command."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.filesize import decimal
from rich.padding import Padding
from rich.text import Text

from airmirror.cli.tables import BAD, DOUBTFUL, GOOD, Cell, cells_of, line, safe, table
from airmirror.config.explain import KeyRow, ValueRow
from airmirror.errors import command, counted
from airmirror.flows.status import Failing, FlowStatus, LastWindow, Throttle
from airmirror.flows.verification import ComparedPartition
from airmirror.offsets.latency import Latency
from airmirror.times import utc
from airmirror.topics.remote import TopicPlan
from airmirror.windows.plan import Planned
from airmirror.windows.progress import CopyProgress
from airmirror.windows.results import WindowResult
from airmirror.wire.mappings import Decision, Hold


def window(result: WindowResult) -> RenderableType:
    """A window's partitions: what was copied from where to where, and whether it is verified. Ranges are [first, end)."""
    rate = f" ({result.copied / result.seconds:,.0f} records/s)" if result.copied else " (nothing new)"
    if result.followed is not None:  # it has waited for records: its time says nothing of its speed
        rate = ""
    title = (
        f"{result.flow}: {result.copied:,} records, {decimal(result.bytes)} in {result.seconds:.1f} s{rate}, "
        f"{counted(result.partitions, 'partition')}"
    )
    if not result.rows:
        return Text(title)
    columns = ("topic", ">partition", ">source range", ">target range", ">records", ">bytes", ">lag", "verified")
    rows = cells_of(
        result.rows,
        "topic partition source target copied bytes lag verified",
        source=lambda row: f"{row.source_start:,}–{row.source_end:,}",
        target=lambda row: f"{row.target_start:,}–{row.target_end:,}" if row.copied else "",
        bytes=lambda row: decimal(row.bytes),
        verified=lambda row: verified(row.verified and row.error is None, row.read_back),
    )
    return table(title, columns, rows)


def followed(result: WindowResult) -> Iterator[Text]:
    """Yield how late a window was that has followed the log."""
    if result.followed is not None:
        yield Text(str(result.followed))


def verified(passed: bool, read_back: bool) -> Text:
    """With window.verify=acks nobody has seen what the target holds, whatever has passed."""
    if passed and not read_back:
        return Text("not read back", DOUBTFUL)
    return Text("yes", GOOD) if passed else Text("no", BAD)


def progress(state: CopyProgress) -> str:
    """Return one line for a running window: the committed part of it."""
    left = "" if state.seconds_left is None else f", {state.seconds_left:.0f} s left"
    return (
        f"{state.offsets / max(1, state.planned):.0%} committed: {state.records:,} records, {decimal(state.bytes)}, "
        f"{state.rate:,.0f} records/s{left}"
    )


def problems(result: WindowResult, refused: Sequence[str]) -> Iterator[Text]:
    """Yield each error and its way out."""
    for row in result.rows:
        if row.lost:
            what = f"{row.topic}-{row.partition}: {row.lost:,} records that the target does not take"
            yield line("lost", what, DOUBTFUL)
        if row.error is not None:
            yield line(str(row.outcome), row.error)
    for reason in refused:
        yield line("refused", reason)
    if result.is_cut:
        yield Text("The window was cut (window.max.ms, window.max.bytes, or ended early): the next one continues.")


def plan(
    topics: TopicPlan, planned: Sequence[Planned], held: Sequence[Hold], fails: Sequence[Failing] = ()
) -> list[RenderableType]:
    """Render a window's plan: topics first, then offsets, then what it leaves out."""
    changes: list[list[Cell]] = [
        [new.name, f"create with {counted(new.partitions, 'partition')}"] for new in topics.create
    ]
    changes += [[more.name, f"from {more.before} to {more.partitions} partitions"] for more in topics.grow]
    for change in topics.configs:
        after = "the cluster's default" if change.after is None else change.after
        changes.append([change.topic, f"{change.key} from {change.before} to {after}"])
    changes += [[acl.topic, f"create ACL: {acl}"] for acl in topics.acls]
    changes += [[refused.topic, line("refused", refused.reason)] for refused in topics.refused]
    changes += [["", note] for note in topics.notes]
    waiting = {(hold.topic, hold.partition) for hold in held}
    offsets: list[list[Cell]] = [
        [item.topic, item.partition, item.start, item.end, item.end - item.start, str(item.error or "")]
        for item in planned
        if item.error or (item.has_work and item.key not in waiting)
    ]
    columns = ("topic", ">partition", ">from", ">to", ">offsets", "")
    return [
        table("remote topics", ("topic", "what"), changes, empty="nothing to create or change"),
        table("offsets to replicate", columns, offsets, empty="nothing new"),
        *([holds(held)] if held else []),
        *failing(fails, told={str(item.key) for item in planned if item.error}),
        *(line("warning", warning, DOUBTFUL) for warning in topics.warnings),
    ]


def comparison(rows: Sequence[ComparedPartition]) -> RenderableType:
    """The result of ``verify``."""
    found = cells_of(
        rows,
        "topic partition records expired lost errors",
        errors=lambda row: Text("\n".join(map(safe, row.errors)), BAD) if row.errors else Text("none", GOOD),
    )
    columns = ("topic", ">partition", ">equal records", ">expired", ">lost", "difference")
    return table("both logs compared", columns, found, empty="nothing was replicated yet")


def status(item: FlowStatus) -> list[RenderableType]:
    """Render a flow's status."""
    counts = {
        ">topics": item.topics,
        ">partitions": item.partitions,
        ">behind (partitions)": item.behind,
        ">lag (records)": item.lag,
        ">not judged (mappings)": item.unverified,
        ">held (partitions)": len(item.held),
    }
    last: list[list[Cell]] = [
        [row.window, utc(row.ended_ms), row.partitions, row.copied, decimal(row.bytes), _ended(row)]
        for row in item.windows
    ]
    columns = ("window", "ended", ">partitions", ">records", ">bytes", "outcome")
    return [
        *unreachable(item),
        table("flows", ("flow", *counts), [(item.flow, *counts.values())]),
        table("last windows: what they committed", columns, last, empty="none has replicated anything yet"),
        *([latency(item.latency)] if item.latency else []),
        *(line("frozen", f"{topic or item.flow}: {why}", DOUBTFUL) for topic, why in item.frozen.items()),
        *throttle(item.throttle),
        *([holds(item.holds)] if item.holds else []),
        *failing(item.failing, told=item.errors.keys()),
        *(line("error", reason) for reason in item.errors.values()),
        *(line("refused", reason) for reason in item.refused),
        *(line("warning", reason, DOUBTFUL) for reason in item.warnings),
    ]


def unreachable(item: FlowStatus) -> Iterator[Text]:
    """Yield that a cluster does not answer, of when all else is then, and where to look next."""
    if item.unreachable:
        yield line("error (try again):", item.unreachable)
        seen = (
            "before any window has seen its source" if item.seen_ms is None else f"as last seen at {utc(item.seen_ms)}"
        )
        ahead = command("failover", "plan", flow=item.flow)
        yield Text(f"What follows is {seen}; if the source stays away, {ahead} says what is there without it.")


def throttle(found: Throttle) -> Iterator[Text]:
    """Yield the flow's limit, and how long the last window waited for it and for the brokers' quotas."""
    if found.bytes_per_second is not None:
        limit = f"at most {decimal(found.bytes_per_second)}/s (throttle.bytes.per.second)"
        yield line("limit", f"{limit}; a slot of the last window waited up to {found.limited:.1f} s for it", "")
    if found.throttled:
        quotas = f"the brokers' quotas had a slot of the last window wait up to {found.throttled:.1f} s"
        yield line("quotas", quotas, DOUBTFUL)


def _ended(row: LastWindow) -> Text:
    if row.error:
        return Text("failed", BAD)
    if row.failed is None and row.copied and not row.bytes:
        return Text("accounted for what was there", GOOD)
    if row.failed is None:
        return Text("not known: the ledger is younger", DOUBTFUL)
    return Text(f"{counted(row.failed, 'partition')} failed", BAD) if row.failed else Text("done", GOOD)


def failing(found: Sequence[Failing], told: Collection[str] = ()) -> list[RenderableType]:
    """Render what fails window after window, since when, and why; ``told``: partitions whose error is shown anyway."""
    if not found:
        return []
    rows = cells_of(
        found,
        "topic partition windows since committed first_window",
        topic=lambda row: row.topic or "(whole windows)",
        partition=lambda row: row.partition if row.topic else None,
        since=lambda row: utc(row.since_ms),
        committed=lambda row: utc(row.committed_ms) if row.committed_ms >= 0 else None,
    )
    columns = ("topic", ">partition", ">failed windows", "since", "last committed", "first in")
    reasons = dict.fromkeys(row.error for row in found if f"{row.topic}-{row.partition}" not in told)
    return [table("fails in every window", columns, rows), *(line("error", each) for each in reasons)]


def latency(rows: Sequence[Latency]) -> RenderableType:
    """Render the latency of heartbeats in the last window that had any: the quickest, the mean, the slowest."""
    numbers = (">flows", ">heartbeats", ">until readable (s)", ">until verified (s)", ">newest is old (s)")
    found: list[list[Cell]] = []
    for row in rows:
        spreads = (f"{each.least:.1f} / {each.mean:.1f} / {each.most:.1f}" for each in (row.readable, row.verified))
        found.append([row.origin, row.hops, row.heartbeats, *spreads, row.age_seconds()])
    return table("end-to-end latency", ("heartbeats of", *numbers), found)


def holds(found: Sequence[Hold]) -> RenderableType:
    """The partitions that wait, by whom, since when and why."""
    rows = cells_of(found, "topic partition offset by time reason", time=lambda hold: utc(hold.time_ms))
    columns = ("topic", ">partition", ">from offset", "by", "since", "reason")
    return table("held partitions", columns, rows, empty="none is held")


def decisions(found: Sequence[Decision]) -> RenderableType:
    """Render decisions: who made each, when, and why."""
    rows = cells_of(
        found,
        "topic partition offset action by time reason",
        action=lambda decision: decision.action.name.lower(),
        time=lambda decision: utc(decision.time_ms),
    )
    columns = ("topic", ">partition", ">at offset", "what", "by", "when", "reason")
    return table("decisions", columns, rows, empty="none yet")


def keys(rows: Sequence[KeyRow], clients: Sequence[KeyRow]) -> Iterator[RenderableType]:
    """Yield every key of the configuration, then the settings of Kafka's clients by what they do here."""
    for row in rows:
        kind = f"  {row.type}, default: {row.default or 'none'}" if row.type else ""
        yield Text.assemble((row.name, "bold"), (kind, "dim"))
        yield Padding(Text(f"{row.doc}\nRead {row.scope.removesuffix('.')}. Here: {row.here}."), (0, 0, 0, 4))
    for here in dict.fromkeys(row.here for row in clients):
        names = ", ".join(row.name for row in clients if row.here == here)
        yield Text.assemble(("Kafka's client settings", "bold"), (f"  {here}", "dim"))
        yield Padding(Text(names), (0, 0, 0, 4))


def values(flow: str, enabled: bool, rows: Sequence[ValueRow], connections: Mapping[str, str]) -> Iterator[Text]:
    """Yield the values that count for a flow, as a file would have them, each in one piece; ``connections``: what is known of
    the Spark connections, by id."""
    yield Text(f"{safe(flow)} ({'enabled' if enabled else 'not enabled'})", "bold")
    for row in rows:
        known = connections.get(row.value, "") if row.key == "spark.conn.id" else ""
        origin = f"{row.origin} ({known})" if known else row.origin
        yield Text.assemble(safe(f"{row.key} = {row.value}"), (f"  # {safe(origin)}", "dim"))

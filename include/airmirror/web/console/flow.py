"""The console's page of a flow: its numbers over time, its windows, its partitions, its reports. Of the ledger alone."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy.engine import Connection

from airmirror.flows import measure
from airmirror.flows.status import with_ends
from airmirror.ledger import Ledger, WindowEnd, WindowRow, showing
from airmirror.ledger.database import reading
from airmirror.ledger.pages import GATE, PAGE, StoredFile, page_name, pages_of
from airmirror.ledger.queries import window_rows
from airmirror.ledger.recovery import complete_of
from airmirror.ledger.samples import FlowSample, between, latest
from airmirror.on_airflow.dags.common import link_to
from airmirror.partitions import grouped
from airmirror.rows import row_of, rows_of
from airmirror.web.console.known import MOST_TEXT, Place, known
from airmirror.web.console.overview import RATE_MS, Shown, summary
from airmirror.wire.mappings import Action, Decision

MOST_WINDOWS = 50
MOST_POINTS = 600  # of a plot
MOST_MARKS = 200  # decisions
MOST_PASSED = 1_000  # of what people have let pass
MOST_REPORTS = 3  # of a kind
VERIFIED = "-verify-"  # of the names of the gate's pages (airmirror.on_airflow.dags.operators)
MOST_ERROR = 4_000  # characters: the way out is at its end

Page = Callable[[str], str | None]  # of a window its Data Docs, None: there is none (any more)
RowsOfWindows = dict[showing.WindowMark, WindowRow]
# Of a flow, with its number of resets. What windows have committed is summed up once: one that follows the log has thousands of
# mapping records, and a page asks every five seconds.
_kept: WeakKeyDictionary[Ledger, dict[str, tuple[int, RowsOfWindows]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class ShownWindow:
    """A window, and of how many partitions all that it has committed is verified now."""

    row: WindowRow
    verified: int


def flow_page(ledger: Ledger, shown: Shown, *, span: tuple[int, int], now: int) -> dict[str, Any]:
    """A flow's page. ``span``: what is plotted, from one time until before the other, in epoch milliseconds, as ``now`` is."""
    name = shown.flow.name
    pages = pages_of(ledger.engine, name)
    of_flow, (since, until) = known(ledger.flow(name), shown.red_run), span
    with reading(ledger.engine) as connection:
        sums, rates = showing.totals(connection, [name]), latest(connection, [name], now - RATE_MS)
        complete = complete_of(connection, [name])[name]
        points = between(connection, name, since, max(until, since + 1), MOST_POINTS)
        partitions = showing.columns(connection, name)
        committed = last_committed(ledger, connection, name, len(of_flow.resets))
        let_pass = _let_pass(connection, name, of_flow.decisions)
    numbers, failing = of_flow.numbers, of_flow.failing
    return {
        "summary": summary(shown, of_flow, sums.get(name), rates.get(name, []), complete),
        "series": series(points),
        "windows": list(_windows(committed, of_flow.ends, docs_of(pages), let_pass)),
        "phases": {label: seconds for (key, label), seconds in numbers.items() if key == measure.SECONDS},
        "outcomes": {label: count for (key, label), count in numbers.items() if key == measure.WINDOWS},
        "latency": _latency(numbers),
        "partitions": _columns(partitions, of_flow.holds, {failure.key for failure in failing}),
        "holds": rows_of(
            (hold for _, hold in sorted(of_flow.holds.items())[:MOST_MARKS]),
            "topic partition by time_ms reason",
            reason=lambda each: each.reason[:MOST_TEXT],
        ),
        "decisions": rows_of(
            of_flow.decisions[-MOST_MARKS:],
            "topic partition time_ms action by",
            action=lambda each: each.action.name.lower(),
        ),
        "failing": rows_of(
            failing[:MOST_MARKS],
            "topic partition since_ms windows transient error",
            error=lambda each: each.error[:MOST_ERROR],
        ),
        "reports": reports_of(pages),
    }


def series(points: list[FlowSample]) -> dict[str, list[float | None]]:
    """Columns for plots: time in epoch seconds; rates are from the point before, unknown where counters fell."""
    rates: list[tuple[float | None, float | None]] = [(None, None)]
    for before, after in pairwise(points):
        seconds = (after.time_ms - before.time_ms) / 1000
        grown = after.records >= before.records and after.bytes >= before.bytes and seconds > 0
        rates.append(
            ((after.records - before.records) / seconds, (after.bytes - before.bytes) / seconds)
            if grown
            else (None, None)
        )
    return {
        "time": [point.time_ms / 1000 for point in points],
        "lag_records": [point.lag_records for point in points],
        "lag_seconds": [_seconds(point.lag_ms) for point in points],
        "records_per_second": [each[0] for each in rates][: len(points)],
        "bytes_per_second": [each[1] for each in rates][: len(points)],
        "latency": [_seconds(point.latency_ms) for point in points],
        "latency_most": [_seconds(point.latency_most_ms) for point in points],
        "recovery": [
            None if point.verified_ms is None else max(0.0, (point.time_ms - point.verified_ms) / 1000)
            for point in points
        ],
    }


def _let_pass(connection: Connection, flow: str, decisions: Sequence[Decision]) -> dict[str, list[str]]:
    """By window the people who have let something of it pass, one a partition: no gate did. Of what several windows have copied
    it is the last one: a decision says only where it ends."""
    passed = [each for each in decisions if each.action in (Action.LET_PASS, Action.ACCEPT_LOSS)][-MOST_PASSED:]
    last = {(each.topic, each.partition, each.offset): each for each in passed}
    times = {place: each.time_ms for place, each in last.items()}
    windows = showing.windows_at(connection, flow, times)
    return grouped((window, last[place].by) for place, window in windows.items())


def docs_of(pages: Sequence[StoredFile]) -> Page:
    """Return what finds the address of the Data Docs of a window's run, from Airflow's base path on."""
    # By the beginning of the name, which tells the run; of several judgements the last one's.
    found = {page.name.rpartition(VERIFIED)[0]: page for page in pages if page.kind == GATE}

    def address(window: str) -> str | None:
        page = found.get(page_name(window.split("#", 1)[0]))
        return link_to(page.path) if page else None

    return address


def reports_of(pages: Sequence[StoredFile]) -> list[dict[str, Any]]:
    """The last reports of each kind: audits, plans of migrations, failovers; newest first."""
    found = []
    for kind, of_kind in groupby(sorted(pages, key=lambda page: page.kind), key=lambda page: page.kind):
        for page in [] if kind == GATE else list(of_kind)[-MOST_REPORTS:]:
            name = page.name.removesuffix(PAGE)
            found.append({"kind": kind, "name": name, "time_ms": page.time_ms, "page": link_to(page.path)})
    return sorted(found, key=lambda report: -report["time_ms"])


def last_committed(ledger: Ledger, connection: Connection, flow: str, resets: int) -> list[ShownWindow]:
    """Return the latest windows that committed anything, the newest first.

    ``resets``: as many as the flow has had: one may have shortened mapping records.
    """
    flows, found = _kept.setdefault(ledger, {}), showing.marks(connection, flow, MOST_WINDOWS)
    seen, before = flows.get(flow, (resets, {}))
    before = before if seen == resets else {}
    missing = [mark.window for mark in found if mark not in before]
    new = {row.window: row for row in window_rows(connection, flow, missing)} if missing else {}
    rows = {mark: before[mark] if mark in before else new[mark.window] for mark in found}
    flows[flow] = resets, rows
    left = showing.unverified_partitions(connection, flow)
    return [ShownWindow(row, row.partitions - left.get(row.window, 0)) for row in rows.values()]


def _windows(
    committed: Sequence[ShownWindow], ends: Mapping[str, WindowEnd], page: Page, let_pass: Mapping[str, list[str]]
) -> Iterator[dict[str, Any]]:
    """Yield the last windows: the run, what was committed and verified of it, how it ended, where its Data Docs are."""
    rows = {each.row.window: each for each in committed}
    for window in with_ends([each.row for each in committed], ends, MOST_WINDOWS):
        row = rows.get(window.window)
        yield row_of(window, "window ended_ms partitions copied bytes failed") | {
            "run": window.window.split("#", 1)[0] if "#" in window.window else None,
            "first_ms": row.row.first_ms if row else None,
            "verified": row.verified if row else 0,
            "let_pass": let_pass.get(window.window, []),
            "error": window.error[:MOST_TEXT],
            "page": page(window.window),
        }


def _latency(numbers: Mapping[tuple[str, str], float]) -> list[dict[str, Any]]:
    """The end-to-end latency that heartbeats measured last, by their origin; none where none are emitted."""
    found: dict[str, dict[str, Any]] = {}
    for (name, origin), value in numbers.items():
        if name in measure.LATENCY or name == measure.HEARTBEAT:
            found.setdefault(origin, {"origin": origin})[name] = value
    return [found[origin] for origin in sorted(found)]


def _columns(found: showing.PartitionColumns, holds: Container[Place], failing: Container[Place]) -> dict[str, Any]:
    """All partitions as columns: ten thousand are some hundred kilobytes."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(found.topic))}
    places = zip(found.topic, found.partition, strict=True)
    return {
        "topics": list(numbers),
        "topic": [numbers[name] for name in found.topic],
        "partition": found.partition,
        "lag": found.lag_records,
        "newest_ms": found.newest_ms,
        "unverified": found.unverified,
        "state": ["held" if place in holds else "failing" if place in failing else "" for place in places],
    }


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000

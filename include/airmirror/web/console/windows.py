"""The last windows of a flow for its page. What windows have committed is summed up once: one that follows the log has thousands
of mapping records, and a page asks every five seconds."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from sqlalchemy.engine import Connection

from airmirror.ledger import Ledger, WindowRow
from airmirror.ledger.queries import window_rows
from airmirror.ledger.showing import WindowMark, marks, unverified_partitions

MOST_WINDOWS = 50
Kept = dict[WindowMark, WindowRow]
_kept: WeakKeyDictionary[Ledger, dict[str, tuple[int, Kept]]] = (
    WeakKeyDictionary()
)  # of a flow, with its number of resets


@dataclass(frozen=True)
class ShownWindow:
    """A window, and of how many partitions all that it has committed is verified now."""

    row: WindowRow
    verified: int


def last_committed(ledger: Ledger, connection: Connection, flow: str, resets: int) -> list[ShownWindow]:
    """Return the latest windows that committed anything, the newest first.

    ``resets``: as many as the flow has had: one may have shortened mapping records.
    """
    flows, found = _kept.setdefault(ledger, {}), marks(connection, flow, MOST_WINDOWS)
    seen, before = flows.get(flow, (resets, {}))
    before = before if seen == resets else {}
    missing = [mark.window for mark in found if mark not in before]
    new = {row.window: row for row in window_rows(connection, flow, missing)} if missing else {}
    rows = {mark: before[mark] if mark in before else new[mark.window] for mark in found}
    flows[flow] = resets, rows
    left = unverified_partitions(connection, flow)
    return [ShownWindow(row, row.partitions - left.get(row.window, 0)) for row in rows.values()]

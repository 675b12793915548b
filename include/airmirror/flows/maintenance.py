"""Forgetting what is old: mapping records (in the mapping topic, and so in the ledger) and pages of gates and audits.

A mapping record is needed to translate positions in its range, and to audit it again. What is not verified stays, and so does
the newest of every partition, from which replication continues (invariants A, C and F).
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.offsets.pruning import delete_mappings, kept_topics, prune_mappings

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Pruned:
    """The numbers of mapping records and pages removed."""

    mappings: int
    pages: int


def prune(
    opened: Opened,
    days: int,
    pages: Path,
    *,
    now_ms: int | None = None,
    tell: Callable[[str], None] = lambda phase: None,
) -> Pruned:
    """Forget the flow's verified mapping records and its pages under ``pages`` that are older than ``days`` days.

    Mapping records below the source's log starts go too; none of a flow or topic that is frozen, for it may return. Raises
    FlowBusy, or a cluster's error.
    """
    before = (int(time.time() * 1000) if now_ms is None else now_ms) - days * DAY_MS
    flow, ledger = opened.flow, opened.ledger
    tell("reading the internal topics")
    catch_up_ledger(opened)
    is_frozen, count = ledger.owners().shut is not None, 0
    if not is_frozen:
        count = prune_mappings(flow, ledger, window=_window(), tell=tell)

    def old_keys() -> list[bytes]:
        ledger.count_verified()  # what is shown as metrics counts them still
        return ledger.prunable(before, kept_topics(flow, ledger))

    if not is_frozen:
        count += delete_mappings(flow, ledger, old_keys, window=_window(), tell=tell)
    if count:
        catch_up_ledger(opened)
    name = flow.name.replace("->", ".")
    old = [page for place in (pages / name, pages / "audits" / name) for page in _older(place, before)]
    for page in old:
        shutil.rmtree(page) if page.is_dir() else page.unlink(missing_ok=True)
    return Pruned(count, len(old))


def _window() -> str:
    return f"prune-{uuid.uuid4().hex[:12]}"


def _older(directory: Path, before_ms: int) -> list[Path]:
    if not directory.is_dir():
        return []
    return [path for path in directory.iterdir() if path.stat().st_mtime * 1000 < before_ms]

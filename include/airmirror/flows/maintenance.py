"""Forgetting what is old: segment records (in the segment topic, and so in the ledger) and pages of gates and audits.

A segment record is needed to translate positions in its range, and to audit it again. What is not verified stays, and so does
the newest of every partition, from which replication goes on (invariants A, C and F).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.offsets.pruning import delete_segments

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Pruned:
    """How many were forgotten."""

    segments: int
    pages: int


def prune(
    opened: Opened,
    days: int,
    pages: Path,
    *,
    now_ms: int | None = None,
    tell: Callable[[str], None] = lambda phase: None,
) -> Pruned:
    """Forget the flow's verified segment records and its pages under ``pages`` that are older than ``days`` days."""
    before = (int(time.time() * 1000) if now_ms is None else now_ms) - days * DAY_MS
    flow, ledger = opened.flow, opened.ledger
    tell("reading the internal topics")
    catch_up_ledger(opened)
    ledger.count_verified()  # what is shown as metrics counts them still
    keys = ledger.prunable(before)
    if keys:
        delete_segments(flow, keys, tell)
        catch_up_ledger(opened)
    name = flow.name.replace("->", ".")
    old = [page for place in (pages / name, pages / "audits" / name) for page in _older(place, before)]
    for page in old:
        shutil.rmtree(page) if page.is_dir() else page.unlink(missing_ok=True)
    return Pruned(len(keys), len(old))


def _older(directory: Path, before_ms: int) -> list[Path]:
    if not directory.is_dir():
        return []
    return [path for path in directory.iterdir() if path.stat().st_mtime * 1000 < before_ms]

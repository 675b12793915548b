"""The pages of a flow that tasks have made: those of its gate, and its reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from airmirror.ledger.pages import GATE, PAGE, StoredFile, page_name
from airmirror.on_airflow.dags.common import link_to

VERIFIED = "-verify-"  # of the names of the gate's pages (airmirror.on_airflow.dags.operators)
MOST_REPORTS = 3  # of a kind


def docs_of(pages: Sequence[StoredFile]) -> Callable[[str], str | None]:
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

"""The pages of a flow below the Data Docs' directory: those of its gate, and the reports that tasks have written."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airmirror.report.kept import file_name

VERIFIED = "-verify-"  # of the names of the gate's pages (airmirror.on_airflow.dags.operators)
MOST_REPORTS = 3  # of a kind


def docs_of(data_docs: Path, flow: str) -> Callable[[str], str | None]:
    """Return what finds the address of the Data Docs of a window's run, from Airflow's base path on."""
    directory = flow.replace("->", ".")
    # By the beginning of the name, which tells the run; of several judgements the last one's.
    found = {name.rpartition(VERIFIED)[0]: name for _, name in _pages(data_docs / directory)}

    def address(window: str) -> str | None:
        name = found.get(file_name(window.split("#", 1)[0]).removesuffix(".html"))
        return _address(directory, name) if name else None

    return address


def reports_of(data_docs: Path, flow: str) -> list[dict[str, Any]]:
    """The last reports of the flow: audits, plans of migrations, failovers, whatever lies in ``<kind>/<flow>``; newest first."""
    directory, found = flow.replace("->", "."), []
    with suppress(OSError):  # there are none yet
        for kind in sorted(entry.name for entry in os.scandir(data_docs) if entry.is_dir()):
            for time_ms, name in _pages(data_docs / kind / directory)[-MOST_REPORTS:]:
                report = {"kind": kind, "name": name.removesuffix(".html"), "time_ms": time_ms}
                found.append(report | {"page": _address(kind, directory, name)})
    return sorted(found, key=lambda report: -report["time_ms"])


def _pages(directory: Path) -> list[tuple[int, str]]:
    """The pages of a directory, each with the epoch milliseconds at which it was written, the oldest first."""
    found = list[tuple[int, str]]()
    with suppress(OSError):  # a page was removed just now, or there are none
        for entry in os.scandir(directory):
            if entry.name.endswith(".html"):
                found.append((entry.stat().st_mtime_ns // 1_000_000, entry.name))
    return sorted(found)


def _address(*parts: str) -> str:
    return f"airmirror/data-docs/{'/'.join(map(quote, parts))}"

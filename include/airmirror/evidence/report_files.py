"""The files of a report: NAME.html and NAME.json. Nothing that is there is written over."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airmirror.evidence.canonical import canonical
from airmirror.evidence.report_errors import ReportNotWritten
from airmirror.evidence.report_page import page

SUFFIXES = (".html", ".json")


def write_report(report: Mapping[str, Any], base: Path) -> tuple[Path, Path]:
    """Write the page and the JSON; ``base`` with or without one of their suffixes. Raises ReportNotWritten."""
    name = base.name.removesuffix(base.suffix) if base.suffix in SUFFIXES else base.name
    found = {base.with_name(name + ".html"): page(report).encode(), base.with_name(name + ".json"): canonical(report)}
    write_new(found)
    html_file, json_file = found
    return html_file, json_file


def write_new(files: Mapping[Path, bytes]) -> None:
    """Write files that are not there yet, all of them or none. Raises ReportNotWritten."""
    written: list[Path] = []
    try:
        for file, content in files.items():
            with open(file, "xb") as opened:
                written.append(file)
                opened.write(content)
                opened.flush()
                os.fsync(opened.fileno())
    except OSError as error:
        for each in written:
            each.unlink(missing_ok=True)
        raise ReportNotWritten(str(file), error.strerror or str(error)) from error

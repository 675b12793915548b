"""The files of a report: NAME.html, NAME.json and the signatures of both, NAME.html.sig and NAME.json.sig. Nothing that is
there is written over.

Each report names the digest of the one before it in its directory, so that one that is removed is missed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airmirror.evidence.canonical import canonical
from airmirror.evidence.report_errors import NoReport, ReportNotWritten
from airmirror.evidence.report_page import page
from airmirror.evidence.reports import FORMAT, Report
from airmirror.evidence.signing import Signer

SUFFIXES = (".html", ".json")
MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Stored:
    """A report's JSON as it lies in a file; ``content`` may be anything that a stranger has written under our format."""

    file: Path
    data: bytes
    content: Mapping[str, Any]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def after(self) -> str:
        """The digest of the report before it; empty: it is the first."""
        after = self.content.get("after")
        return str(after.get("sha256", "")) if isinstance(after, dict) else ""


def write_report(made: Report, base: Path, key: Signer | None = None, after: Path | None = None) -> list[Path]:
    """Write the page, the JSON and, with a key, their signatures; ``base`` with or without one of their suffixes.

    ``after``: the report before it; by default the newest of the same directory. Raises ReportNotWritten, NoReport.
    """
    name = base.name.removesuffix(base.suffix) if base.suffix in SUFFIXES else base.name
    before = read_report(after) if after else newest(base.parent)
    whole = made.as_dict() | {
        "after": {"file": before.file.name, "sha256": before.sha256} if before else None,
        "signer": {"algorithm": "Ed25519", "public_key": key.public_key} if key else None,
    }
    data = canonical(whole)
    files = {base.with_name(name + ".html"): page(whole).encode(), base.with_name(name + ".json"): data}
    if key:
        files |= {signature_of(file): key.sign(content) for file, content in files.items()}
    _write_new(files)
    return list(files)


def signature_of(file: Path) -> Path:
    return file.with_name(file.name + ".sig")


def read_report(file: Path) -> Stored:
    """A report's JSON, whatever is wrong with it but that it is none. Raises NoReport."""
    try:
        with open(file, "rb") as opened:
            data = opened.read(MOST_BYTES)
    except OSError as error:
        raise NoReport(str(file), error.strerror or str(error)) from error
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NoReport(str(file), f"it is not JSON ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise NoReport(str(file), f"its format is not {FORMAT!r}")
    return Stored(file, data, content)


def reports_of(directory: Path) -> list[Stored]:
    """The reports of a directory, by name; other files are passed over."""
    found = []
    for file in sorted(directory.glob("*.json")):
        try:
            found.append(read_report(file))
        except NoReport:
            continue  # other JSON
    return found


def newest(directory: Path) -> Stored | None:
    """The end of a directory's chain: a report that none comes after; of several the one that was made last."""
    found = reports_of(directory)
    named = {each.after for each in found}
    ends = [each for each in found if each.sha256 not in named]
    return max(ends, key=lambda each: (_made(each), each.file.name), default=None)


def _made(stored: Stored) -> int:
    made = stored.content.get("made_ms")
    return made if isinstance(made, int) else -1


def _write_new(files: Mapping[Path, bytes]) -> None:
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

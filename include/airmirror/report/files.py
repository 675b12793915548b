"""The files of a document, written and signed: NAME.html and NAME.json, with NAME.html.sig and NAME.json.sig.

Evidence is never written over, and names the digest of the report before it in its directory, so that one that is removed is
missed. A plan, or the report of a procedure, replaces what is there, and is in no chain.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airmirror.report.canonical import canonical
from airmirror.report.document import FORMAT, Document
from airmirror.report.errors import NoReport, ReportNotWritten
from airmirror.report.page import page

if TYPE_CHECKING:  # it needs the package cryptography, which who signs nothing need not have
    from airmirror.report.signing import Signer

SUFFIXES = (".html", ".json")
SIGNED = ".sig"
MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Stored:
    """A report's JSON as it lies in a file; ``content`` may be anything that a stranger has written under our format."""

    file: Path
    data: bytes
    content: Mapping[str, Any]

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def after(self) -> str:
        """The digest of the report before it; empty: it is the first."""
        after = self.content.get("after")
        return str(after.get("sha256", "")) if isinstance(after, dict) else ""


def write_evidence(made: Document, base: Path, key: Signer | None = None, after: Path | None = None) -> list[Path]:
    """Write the page, the JSON and, with a key, their signatures; ``base`` with or without one of their suffixes.

    ``after``: the report before it; by default the newest of the same directory. Raises ReportNotWritten, NoReport.
    """
    before = read_report(after) if after else newest(base.parent)
    chained = {"after": {"file": before.file.name, "sha256": before.sha256} if before else None}
    files = _placed(rendered(made.as_dict() | chained, _stem(base), key), base)
    write_new(files)
    return list(files)


def write_document(made: Document, base: Path, key: Signer | None = None, done: str = "") -> list[Path]:
    """Write the same over what is there, the page first. ``done``: what was carried out. Raises ReportNotWritten."""
    files = _placed(rendered(made.as_dict(), _stem(base), key), base)
    file = base
    try:
        base.parent.mkdir(parents=True, exist_ok=True)
        for suffix in SUFFIXES:
            signature_of(base.with_name(_stem(base) + suffix)).unlink(missing_ok=True)  # it would be of other content
        for file, content in files.items():
            file.write_bytes(content)
    except OSError as error:
        raise ReportNotWritten(str(file), error.strerror or str(error), done) from error
    return list(files)


def rendered(told: dict[str, Any], name: str, key: Signer | None = None) -> dict[str, bytes]:
    """The page, the JSON and their signatures, by the names of their files. ``told``: a document's ``as_dict``."""
    content = told | {"signer": {"algorithm": "Ed25519", "public_key": key.public_key} if key else None}
    data = canonical(content)
    files = {f"{name}.html": page(content).encode(), f"{name}.json": data}
    if key:
        files |= {f"{file}{SIGNED}": key.sign(written) for file, written in files.items()}
    return files


def _placed(files: Mapping[str, bytes], base: Path) -> dict[Path, bytes]:
    return {base.with_name(name): content for name, content in files.items()}


def _stem(base: Path) -> str:
    return base.stem if base.suffix in SUFFIXES else base.name


def signature_of(file: Path) -> Path:
    return file.with_name(file.name + SIGNED)


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
    # A plan is written over, and breaks no chain.
    found = [each for each in reports_of(directory) if "after" in each.content]
    named = {each.after for each in found}
    ends = [each for each in found if each.sha256 not in named]
    return max(ends, key=lambda each: (_made(each), each.file.name), default=None)


def _made(stored: Stored) -> int:
    made = stored.content.get("made_ms")
    return made if isinstance(made, int) else -1


def write_new(files: Mapping[Path, bytes]) -> None:
    """Write files that are not there yet, all of them or none. Raises ReportNotWritten.

    Whoever ends it meanwhile leaves no file that was cut, but an empty one.
    """
    written: list[Path] = []
    try:
        for file, content in files.items():
            open(file, "xb").close()
            written += [file, part := file.with_name(f"{file.name}.part")]
            with open(part, "wb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(opened.fileno())
            part.replace(file)
    except OSError as error:
        for each in written:
            each.unlink(missing_ok=True)
        raise ReportNotWritten(str(file), error.strerror or str(error)) from error

"""The end of the demo: a report of it all, signed with a key that is made for it, and checked."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from airmirror.cli.report import checked
from airmirror.errors import command
from airmirror.flows.prepare import Opened
from airmirror.flows.report import report_flow
from airmirror.flows.report_rows import Span
from airmirror.local import LOCAL
from airmirror.report.files import write_evidence
from airmirror.report.signing import Signer

DIRECTORY = LOCAL / "demo-report"  # emptied by the next demo


@dataclass(frozen=True)
class Reported:
    """The report's page and JSON, its verdict, and the words of its check; ``doubts``: why it is no proof."""

    html: Path
    json: Path
    public_key: Path
    said: tuple[str, ...]
    doubts: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        yield f"A report of it is in {self.html} and, with the same content, in {self.json}, signed with a key made for it."
        yield f"Checked by: {command('report', 'check', self.json, '--public-key', self.public_key)}"
        yield from self.said


def report_demo(opened: Opened, directory: Path = DIRECTORY) -> Reported:
    """Write the report of everything that the flow has done into a directory, and check it as anybody can."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    made, key, public = report_flow(opened, Span()), Ed25519PrivateKey.generate(), _short(directory / "public.pem")
    html, json, *_ = map(_short, write_evidence(made, directory / "report", Signer(key)))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    said, is_sound = checked(json, public)
    doubts = [] if is_sound else [f"the report's check: {line}" for line in said]
    if not made.is_good:
        doubts.append(f"the report says: {made.headline}")
    return Reported(html, json, public, tuple(said), tuple(doubts))


def _short(file: Path) -> Path:
    """The path as one types it here."""
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file

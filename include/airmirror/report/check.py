"""Checking a report: its signature, its page, and the chain of reports before it."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from airmirror import __version__
from airmirror.report.canonical import parsed
from airmirror.report.files import Stored, read_report, reports_of, signature_of
from airmirror.report.page import embedded_json, page
from airmirror.times import utc


@dataclass(frozen=True)
class Checked:
    """The result of a check: ``wrong`` with the report or with one before it, and ``notes`` on what was not proven.

    ``chain``: the files, from the report back to the first.
    """

    wrong: tuple[str, ...]
    notes: tuple[str, ...]
    chain: tuple[Path, ...]
    said: str = ""  # what the report says that it is about, when it was made, and its verdict


def check(file: Path, public_key: str = "") -> Checked:
    """Check a report and those before it in its directory. ``public_key``: whose signature is asked for (signing.name_of);
    empty: whoever the report says. Raises NoReport."""
    at: Stored | None = read_report(file)
    there = reports_of(file.parent)
    by_digest = {each.sha256: each for each in there}
    wrong, notes, chain = list[str](), list[str](), list[Stored]()
    while at is not None:
        chain.append(at)
        wrong += [f"{at.file.name}: {each}" for each in _wrong(at, public_key)]
        before = by_digest.get(at.after) if at.after else None
        if at.after and before is None:
            wrong.append(f"{at.file.name}: the report before it (SHA-256 {at.after}) is not here: removed or altered")
        at = before
    wrong += [*_forks(chain, there), *_twice(chain, there)]
    keys = {_key_of(each) for each in chain}
    if len(keys) > 1 and not public_key:
        notes.append(f"the chain is signed with {len(keys)} keys")
    if not public_key:
        notes.append(
            f"who signed is not known: compare the key {_key_of(chain[0])} with the one you were given (--public-key)"
        )
    return Checked(tuple(wrong), tuple(notes), tuple(each.file for each in chain), _said(chain[0].content))


def _said(content: Mapping[str, object]) -> str:
    made = content.get("made_ms")
    at = utc(made) if isinstance(made, int) else "at a time that is not known"
    return f"{content.get('about')}, made {at}: {content.get('headline')}"


def _wrong(stored: Stored, public_key: str) -> list[str]:
    try:
        parsed(stored.data)
    except ValueError as error:
        return [f"its JSON was altered: {error}"]
    found = _signer(stored, public_key) or _signature(stored, stored.file, stored.data) or _page(stored)
    return [found] if found else []


def _signer(stored: Stored, public_key: str) -> str:
    """Return the error of the key that it names as its signer's, or ""."""
    key = _key_of(stored)
    if not key:
        return "it is not signed: nothing proves that it was not altered"
    if public_key and key != public_key:
        return f"it names the key {key} as its signer, not {public_key}"
    return ""


def _signature(stored: Stored, file: Path, data: bytes) -> str:
    """Return the error of the signature of one of its files, or ""."""
    from airmirror.report.signing import is_signed_by

    key, signed = _key_of(stored), signature_of(file)
    try:
        signature = signed.read_bytes()
    except OSError as error:
        return f"its signature {signed.name} can't be read: {error.strerror}"
    try:
        raw = b64decode(key, validate=True)
    except ValueError:
        return f"{key!r} is no public key"
    return "" if is_signed_by(raw, data, signature) else f"{file.name} is not what {signed.name} signs: it was altered"


def _page(stored: Stored) -> str:
    """Return the error of the page, or "": its signer has signed it, for this report; by the same version it is made again."""
    file = stored.file.with_suffix(".html")
    try:
        text = file.read_bytes()
    except OSError as error:
        return f"its page {file.name} can't be read: {error.strerror}"
    if found := _signature(stored, file, text):
        return found
    if embedded_json(text.decode(errors="replace")) != stored.data:
        return f"the JSON in its page {file.name} is another one"
    if stored.content.get("version") != __version__:
        return ""
    try:
        made = page(stored.content).encode()
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        return f"no page can be made of it: {error!r}"
    return "" if made == text else f"its page {file.name} says something else"


def _twice(chain: list[Stored], there: list[Stored]) -> list[str]:
    """Files that hold one and the same report: one of them is where another report belongs."""
    names = {each.sha256: sorted(other.file.name for other in there if other.sha256 == each.sha256) for each in chain}
    return [f"{' and '.join(equal)} are one and the same report" for equal in names.values() if len(equal) > 1]


def _forks(chain: list[Stored], there: list[Stored]) -> list[str]:
    """Reports that name one of the chain's as the one before them, though another does already."""
    files = {each.file.name for each in chain}
    followed = {each.after: each.file.name for each in chain if each.after}
    return [
        f"{each.file.name} and {followed[each.after]} name the same report as the one before them"
        for each in there
        if each.after in followed and each.file.name not in files
    ]


def _key_of(stored: Stored) -> str:
    signer = stored.content.get("signer")
    return str(signer.get("public_key", "")) if isinstance(signer, Mapping) else ""

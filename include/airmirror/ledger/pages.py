"""Pages that Airflow's tasks have made, with their JSON and signatures: every service of Airflow reaches the ledger's database,
and none another one's disk.

No topic has them: who deletes the ledger deletes them too, evidence included (``airmirror report fetch`` writes it to files).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sql
from sqlalchemy.engine import Connection, Engine

from airmirror.ledger.database import reading, writing
from airmirror.ledger.errors import PageTooLarge
from airmirror.ledger.tables import pages
from airmirror.report.document import Document, now_ms
from airmirror.report.files import SIGNED, SUFFIXES, rendered

if TYPE_CHECKING:  # it needs the package cryptography, which who signs nothing need not have
    from airmirror.report.signing import Signer

GATE, AUDITS, REPORTS, COMPARISONS = "data-docs", "audits", "reports", "compare"  # kinds; each runbook has its own
EVIDENCE = (REPORTS, COMPARISONS)  # each names the one before it, so that none is removed
MOST_PAGES = 200  # of another kind of a flow, some kilobytes each
MOST_BYTES = 64 << 20  # of a file
PAGE, JSON = SUFFIXES


@dataclass(frozen=True)
class PagePlace:
    """The place of the pages of a kind: those of a flow, or of a comparison by its name."""

    kind: str
    flow: str

    def path(self, name: str) -> str:
        """The path of a page, as a link has it."""
        return f"{self.kind}/{self.flow}/{name}{PAGE}"


@dataclass(frozen=True)
class StoredFile:
    """A file of a page, without its content."""

    kind: str
    flow: str
    name: str
    time_ms: int

    @property
    def path(self) -> str:
        """As a link has it."""
        return f"{self.kind}/{self.flow}/{self.name}"


def page_name(run: str) -> str:
    """The name of what a run has made, without a suffix, which does as a file's."""
    return re.sub(r"[^A-Za-z0-9_.+-]", "-", run)


def keep_page(engine: Engine, place: PagePlace, run: str, page: str) -> str:
    """Keep a page, in the place of an earlier one of the run; its path. Raises PageTooLarge, LedgerUnavailable."""
    name = page_name(run)
    return _keep(engine, place, name, {f"{name}{PAGE}": page.encode(errors="backslashreplace")})


def keep_document(engine: Engine, place: PagePlace, run: str, made: Document, key: Signer | None = None) -> str:
    """Keep a plan, or the report of a procedure, as ``keep_page``."""
    name = page_name(run)
    return _keep(engine, place, name, rendered(made.as_dict(), name, key))


def keep_evidence(engine: Engine, place: PagePlace, run: str, made: Document, key: Signer | None = None) -> str:
    """Keep a report that names the one before it in its place, whose path it gives. Raises as ``keep_page``."""
    name = page_name(run)
    with writing(engine, _lock(place)) as connection:
        after, time_ms = _after(connection, place)
        _insert(connection, place, rendered(made.as_dict() | {"after": after}, name, key), time_ms)
    return place.path(name)


def page_at(engine: Engine, kind: str, flow: str, name: str) -> bytes | None:
    """Return the content of a file; None: there is none (any more)."""
    own = pages.c
    with reading(engine) as connection:
        query = sql.select(own.content).where(own.flow == flow, own.kind == kind, own.name == name)
        found = connection.scalar(query)
    return None if found is None else bytes(found)


def pages_of(engine: Engine, flow: str) -> list[StoredFile]:
    """Return the pages of a flow, of all kinds, the oldest first."""
    own = pages.c
    query = sql.select(own.kind, own.flow, own.name, own.time_ms).where(own.flow == flow, own.name.endswith(PAGE))
    with reading(engine) as connection:
        return [StoredFile(*row) for row in connection.execute(query.order_by(own.time_ms, own.kind, own.name))]


def all_files(engine: Engine) -> Iterator[tuple[StoredFile, bytes]]:
    """Yield every file with its content, one at a time."""
    own = pages.c
    with reading(engine) as connection:
        query = sql.select(own.kind, own.flow, own.name, own.time_ms).order_by(own.time_ms, own.name)
        found = [StoredFile(*row) for row in connection.execute(query)]
    for each in found:
        content = page_at(engine, each.kind, each.flow, each.name)
        if content is not None:  # it was removed meanwhile
            yield each, content


def forget_pages(engine: Engine, flow: str, before_ms: int) -> int:
    """Remove a flow's pages that are older; evidence stays. How many."""
    own = pages.c
    old = sql.and_(own.flow == flow, own.time_ms < before_ms, own.kind.not_in(EVIDENCE))
    with writing(engine, flow) as connection:
        count = connection.scalar(sql.select(sql.func.count()).select_from(pages).where(old, own.name.endswith(PAGE)))
        connection.execute(pages.delete().where(old))
    return count or 0


def _lock(place: PagePlace) -> str:
    return f"pages {place.kind} {place.flow}"


def _keep(engine: Engine, place: PagePlace, name: str, files: Mapping[str, bytes]) -> str:
    own, here = pages.c, _here(place)
    earlier = [f"{name}{suffix}{signed}" for suffix in SUFFIXES for signed in ("", SIGNED)]
    with writing(engine, _lock(place)) as connection:
        connection.execute(pages.delete().where(here, own.name.in_(earlier)))
        _insert(connection, place, files, now_ms())
        times = sql.select(own.time_ms).where(here, own.name.endswith(PAGE)).order_by(own.time_ms.desc())
        oldest = connection.scalar(times.offset(MOST_PAGES - 1).limit(1))
        if oldest is not None:
            connection.execute(pages.delete().where(here, own.time_ms < oldest))
    return place.path(name)


def _insert(connection: Connection, place: PagePlace, files: Mapping[str, bytes], time_ms: int) -> None:
    for name, content in files.items():
        if len(content) > MOST_BYTES:
            raise PageTooLarge(f"{place.kind}/{place.flow}/{name}", len(content), MOST_BYTES)
    rows = [{"name": name, "content": content, "time_ms": time_ms} for name, content in files.items()]
    connection.execute(pages.insert(), [{"flow": place.flow, "kind": place.kind} | row for row in rows])


def _after(connection: Connection, place: PagePlace) -> tuple[dict[str, str] | None, int]:
    """Return what the next report of a chain names, and its time: the newest is the chain's end, whatever a clock says."""
    own = pages.c
    query = sql.select(own.name, own.time_ms, own.content).where(_here(place), own.name.endswith(JSON))
    before = connection.execute(query.order_by(own.time_ms.desc()).limit(1)).first()
    if before is None:
        return None, now_ms()
    link = {"file": before.name, "sha256": hashlib.sha256(before.content).hexdigest()}
    return link, max(now_ms(), before.time_ms + 1)


def _here(place: PagePlace) -> sql.ColumnElement[bool]:
    return sql.and_(pages.c.flow == place.flow, pages.c.kind == place.kind)

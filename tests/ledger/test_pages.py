"""Pages in the ledger, on both databases: bounded, forgotten when they are old, but for evidence, whose chain is whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror.ledger import Ledger, pages
from airmirror.ledger.errors import PageTooLarge
from airmirror.ledger.pages import (
    AUDITS,
    COMPARISONS,
    GATE,
    REPORTS,
    PagePlace,
    forget_pages,
    keep_document,
    keep_evidence,
    keep_page,
    page_at,
    pages_of,
)
from airmirror.ledger.tables import pages as table
from airmirror.report.check import check
from airmirror.report.document import Document
from airmirror.report.signing import Signer, name_of

FLOW = "east->west"
DOCS = PagePlace(GATE, FLOW)
MADE = Document("failover", FLOW, "nothing is lost", True, {}, ())
RUN = "scheduled__2026-11-25T10:00:00+00:00#verify#1-ab"


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with closing(Ledger(ledger_url)) as opened:
        yield opened


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time at which pages are kept: its last number."""
    now = [1000]
    monkeypatch.setattr(pages, "now_ms", lambda: now[-1])
    return now


def at(ledger: Ledger, path: str) -> str | None:
    content = page_at(ledger.engine, *path.split("/"))
    return None if content is None else content.decode()


def names(ledger: Ledger, flow: str = FLOW) -> list[str]:
    return [page.path for page in pages_of(ledger.engine, flow)]


def test_a_page_is_found_by_its_path_and_takes_the_place_of_the_run_s_earlier_one(ledger: Ledger) -> None:
    path = keep_page(ledger.engine, DOCS, RUN, "first \udc80")
    assert path == "data-docs/east->west/scheduled__2026-11-25T10-00-00+00-00-verify-1-ab.html"
    assert at(ledger, path) == "first \\udc80"
    assert keep_page(ledger.engine, DOCS, RUN, "second") == path and at(ledger, path) == "second"
    assert at(ledger, path.replace(FLOW, "west->east")) is None and names(ledger) == [path]


def test_a_document_has_its_json_and_no_signature_of_an_earlier_one(ledger: Ledger) -> None:
    key, place = Signer(Ed25519PrivateKey.generate()), PagePlace("failover-plans", FLOW)
    path = keep_document(ledger.engine, place, "run", MADE, key)
    assert "nothing is lost" in (at(ledger, path) or "") and page_at(ledger.engine, *f"{path}.sig".split("/"))
    keep_document(ledger.engine, place, "run", replace(MADE, headline="all is lost"))
    assert json.loads(at(ledger, path.replace(".html", ".json")) or "")["headline"] == "all is lost"
    assert page_at(ledger.engine, *f"{path}.sig".split("/")) is None and names(ledger) == [path]


def test_the_newest_are_kept_of_each_kind_of_each_flow(
    ledger: Ledger, clock: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST_PAGES", 3)
    others = [PagePlace(AUDITS, FLOW), PagePlace(GATE, "west->east")]
    for place in others:
        keep_page(ledger.engine, place, "old", "page")
    for number in range(5):
        clock.append(2000 + number)
        keep_page(ledger.engine, DOCS, f"run-{number}", "page")
    kept = [page.name for page in pages_of(ledger.engine, FLOW) if page.kind == GATE]
    assert kept == [f"run-{number}.html" for number in range(2, 5)]
    assert all(at(ledger, place.path("old")) == "page" for place in others)


def test_a_page_that_is_too_large_is_refused_and_leaves_what_was_there(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST_BYTES", 10)
    path = keep_page(ledger.engine, DOCS, "run", "0123456789")
    with pytest.raises(PageTooLarge, match=r"data-docs/east->west/run.html has 11 bytes.*at most 10") as refused:
        keep_page(ledger.engine, DOCS, "run", "0123456789a")
    assert not refused.value.transient and at(ledger, path) == "0123456789"


def test_old_pages_are_forgotten_and_evidence_stays(ledger: Ledger, clock: list[int]) -> None:
    plans, reports = PagePlace("failover-plans", FLOW), PagePlace(REPORTS, FLOW)
    for time_ms in (1000, 2000):
        clock.append(time_ms)
        for place in (DOCS, PagePlace(GATE, "west->east")):
            keep_page(ledger.engine, place, f"run-{time_ms}", "page")
        keep_document(ledger.engine, plans, f"run-{time_ms}", MADE)
        keep_evidence(ledger.engine, reports, f"run-{time_ms}", MADE)
    assert forget_pages(ledger.engine, FLOW, 2000) == 2
    assert names(ledger) == [
        "reports/east->west/run-1000.html",
        *(f"{kind}/east->west/run-2000.html" for kind in (GATE, "failover-plans", REPORTS)),
    ]
    assert at(ledger, "failover-plans/east->west/run-1000.json") is None
    assert len(names(ledger, "west->east")) == 2 and forget_pages(ledger.engine, FLOW, 2000) == 0


def test_a_rebuild_and_what_is_forgotten_of_a_flow_leave_its_pages(ledger: Ledger) -> None:
    path, flow = keep_page(ledger.engine, DOCS, "run", "page"), ledger.flow(FLOW)
    assert flow.replace_by(flow.anew())
    flow.forget()
    assert at(ledger, path) == "page"


def test_evidence_is_chained_whatever_the_clocks_and_fetched_as_files(
    ledger: Ledger, ledger_url: str, clock: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, place = Ed25519PrivateKey.generate(), PagePlace(COMPARISONS, "nightly")
    for number, time_ms in enumerate((5000, 3000, 4000)):  # of three machines
        clock.append(time_ms)
        keep_evidence(ledger.engine, place, f"run-{number}", replace(MADE, about=f"the {number}th"), Signer(key))
    keep_document(ledger.engine, PagePlace("failover-plans", FLOW), "plan", MADE)
    words = ["report", "fetch", str(tmp_path / "fetched"), "--ledger", ledger_url]

    def killed(fd: int) -> None:
        os.ftruncate(fd, 5)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", killed)
        assert CliRunner().invoke(app, words).exit_code != 0
    assert any(file.is_file() for file in (tmp_path / "fetched").rglob("*"))
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and "14 files that were not there" in done.output, done.output
    assert not list((tmp_path / "fetched").rglob("*.part"))
    newest = tmp_path / "fetched" / "compare" / "nightly" / "run-2.json"
    found = check(newest, name_of(key.public_key()))
    assert found.wrong == () and [file.stem for file in found.chain] == ["run-2", "run-1", "run-0"]
    assert (tmp_path / "fetched" / "failover-plans" / "east.west" / "plan.html").exists()
    # Whoever may write the ledger alters no file that was fetched before, and writes none elsewhere.
    with ledger.engine.begin() as connection:
        connection.execute(table.update().where(table.c.name == "run-2.json").values(content=b"{}"))
        row = {"flow": "../..", "kind": "..", "name": "../../passwd", "time_ms": 1, "content": b"x"}
        connection.execute(table.insert(), [row])
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and "1 files that were not there" in done.output, done.output
    assert check(newest, name_of(key.public_key())).wrong == ()
    assert (tmp_path / "fetched" / "-." / "-.-.." / "-.-..-passwd").read_bytes() == b"x"


def test_a_ledger_that_is_not_there_is_not_made_and_a_place_that_is_none_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    done = CliRunner().invoke(app, ["report", "fetch", str(tmp_path), "--ledger", f"sqlite:///{missing}"])
    told = " ".join(done.output.split())
    assert done.exit_code == 75 and "there is none; name it with --ledger" in told, told
    assert told.endswith("Pages of plans and reports are in this one only"), "an empty ledger has no pages"
    assert not missing.exists()
    with closing(Ledger(f"sqlite:///{tmp_path / 'there.db'}")) as ledger:
        keep_page(ledger.engine, DOCS, "run", "page")
    (tmp_path / "file").touch()
    words = ["report", "fetch", str(tmp_path / "file"), "--ledger", f"sqlite:///{tmp_path / 'there.db'}"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2 and "give another place" in " ".join(done.output.split()), done.output

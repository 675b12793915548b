"""Data Docs of our own: what a person needs of a verdict, and nothing that a stranger's text could do on the page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

from airmirror.quality.gate import Limits, judge
from airmirror.quality.page import MOST_ROWS, PAGES_KEPT
from airmirror.quality.suites import Suite, load_suites
from airmirror.quality.verdict import Judgement
from quality.test_gate import GOOD, OWN, rows, written

MARKUP = "<script>alert('x')</script><svg onload=alert(1)><img src=//evil.example/p.png onerror=x>"
NOTES = "Stocks must stay quiet at the weekend."


class Elements(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def judged(given: list[Mapping[str, object]], suites: tuple[Suite, ...], docs: Path) -> tuple[Judgement, Elements]:
    found = judge(given, suites, flow="east->west", window="run 1#verify#1-ab", limits=Limits(), docs=docs)
    assert found.docs is not None
    return found, Elements(found.docs.read_text())


def test_a_page_tells_what_was_asked_what_failed_the_rows_and_the_notes(tmp_path: Path) -> None:
    suite = f"[{{type: expect_column_max_to_be_between, kwargs: {{column: copied, max_value: 11}}, notes: {NOTES}}}]"
    suites = written(tmp_path, f"name: mine\nexpectations: {suite}\n")
    judgement, page = judged(rows({"copied": 12, "target_records": 12}, {"gaps": 3}), suites, tmp_path / "docs")
    assert "did not pass" in page.text and "east->west" in page.text and "run 1#verify#1-ab" in page.text
    assert page.text.count(NOTES) >= 2 and "suite mine" in page.text and "expect_column_max_to_be_between" in page.text
    asked = {(each.suite, each.expectation.type): each for each in judgement.asked}
    assert len(judgement.asked) == 9 and asked["mine", "expect_column_max_to_be_between"].failed
    assert "Mappings follow one another without a gap" in page.text  # the product's own notes too
    assert all(name in page.text for name in GOOD)
    _, good = judged(rows({}), load_suites(OWN), tmp_path / "docs")
    assert "all 2 partitions passed" in good.text


def test_a_page_has_no_script_and_needs_no_other_host(tmp_path: Path) -> None:
    hostile = {"topic": MARKUP, "remote_topic": MARKUP, "error": MARKUP, "gaps": 1}
    suite = f'[{{type: expect_column_max_to_be_between, kwargs: {{column: copied, max_value: 1}}, notes: "{MARKUP}"}}]'
    suites = written(tmp_path, f"name: mine\nexpectations: {suite}\n")
    _, page = judged(rows(hostile), suites, tmp_path / "docs")
    assert set(page.tags) <= {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "p",
        "div",
        "table",
        "tr",
        "th",
        "td",
    }
    assert {name for name, _ in page.attributes} <= {"lang", "charset", "class"}
    assert page.text.count(MARKUP) >= 4  # shown as it is


def test_a_page_is_small_and_old_ones_are_forgotten(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(PAGES_KEPT):
        (docs / f"old-{number}.html").write_text("")
        os.utime(docs / f"old-{number}.html", (1_000_000 + number,) * 2)
    many = rows(*({"error": "x" * 5000} for _ in range(MOST_ROWS + 10)))
    judgement, page = judged(many, load_suites(OWN), docs)
    assert judgement.docs == docs / "run-1-verify-1-ab.html" and judgement.docs.stat().st_size < 2_000_000
    assert f"… and {len(many) - MOST_ROWS} more" in page.text
    kept = {path.name for path in docs.iterdir()}
    assert len(kept) == PAGES_KEPT and "old-0.html" not in kept and "old-1.html" in kept and judgement.docs.name in kept

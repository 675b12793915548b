"""Data Docs of our own: what a person needs of a verdict, and nothing that a stranger's text could do on the page."""

from __future__ import annotations

from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

from airmirror.quality.gate import Limits, validate
from airmirror.quality.page import MOST_ROWS, verdict_page
from airmirror.quality.suites import Suite, load_suites
from airmirror.quality.verdict import Validation
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


def judged(given: list[Mapping[str, object]], suites: tuple[Suite, ...]) -> tuple[Validation, str]:
    about = {"flow": "east->west", "window": "run 1#verify#1-ab"}
    found = validate(given, suites, **about, limits=Limits())
    return found, verdict_page(given, found, **about)


def test_a_page_tells_what_was_asked_what_failed_the_rows_and_the_notes(tmp_path: Path) -> None:
    suite = f"[{{type: expect_column_max_to_be_between, kwargs: {{column: copied, max_value: 11}}, notes: {NOTES}}}]"
    suites = written(tmp_path, f"name: mine\nexpectations: {suite}\n")
    validation, text = judged(rows({"copied": 12, "target_records": 12}, {"gaps": 3}), suites)
    page = Elements(text)
    assert "did not pass" in page.text and "east->west" in page.text and "run 1#verify#1-ab" in page.text
    assert page.text.count(NOTES) >= 2 and "suite mine" in page.text and "expect_column_max_to_be_between" in page.text
    asked = {(each.suite, each.expectation.type): each for each in validation.asked}
    assert len(validation.asked) == 9 and asked["mine", "expect_column_max_to_be_between"].failed
    assert "Mappings follow one another without a gap" in page.text  # the product's own notes too
    assert all(name in page.text for name in GOOD)
    assert "all 2 partitions passed" in judged(rows({}), load_suites(OWN))[1]


def test_a_page_has_no_script_and_needs_no_other_host(tmp_path: Path) -> None:
    hostile = {"topic": MARKUP, "remote_topic": MARKUP, "error": MARKUP, "gaps": 1}
    suite = f'[{{type: expect_column_max_to_be_between, kwargs: {{column: copied, max_value: 1}}, notes: "{MARKUP}"}}]'
    suites = written(tmp_path, f"name: mine\nexpectations: {suite}\n")
    page = Elements(judged(rows(hostile), suites)[1])
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


def test_a_page_is_small() -> None:
    many = rows(*({"error": "x" * 5000} for _ in range(MOST_ROWS + 10)))
    _, page = judged(many, load_suites(OWN))
    assert len(page) < 2_000_000 and f"… and {len(many) - MOST_ROWS} more" in page

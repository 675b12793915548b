"""The work of a runbook's tasks, of one that only counts: what is left is a red task, what is approved is not refused."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.ledger import Ledger
from airmirror.ledger.pages import pages_of
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.tasks import runbooks
from airmirror.on_airflow.tasks.runbooks import (
    RehearsalFailed,
    RunbookRequest,
    ask_undo,
    plan,
    rehearse,
    take,
    take_back,
)
from airmirror.report.document import Document, Section
from airmirror.runbooks.errors import CannotUndo, Incomplete, NoSuchStep
from airmirror.runbooks.moving import PutBack
from airmirror.runbooks.runbook import Order, Runbook, Step, Undo
from airmirror.runbooks.shown import put_back_section, shown_undo
from airmirror.web.console.flow import reports_of
from airmirror.wire.moves import GroupMove
from support.kept import kept, ledger_in

FLOW: Any = SimpleNamespace(name="east->west", window=SimpleNamespace(longest_ms=0))
SITE: Any = SimpleNamespace(flow=FLOW)


def document(headline: str, *problems: str) -> Document:
    rows = [{"problem": each} for each in problems]
    return Document("count", "Count", headline, not problems, {}, [Section("problems", rows, "Problems")])


def refuse(site: Any, order: Order) -> None:
    raise NoSuchStep("count", (), ())


def counting(**more: Any) -> Runbook[Any, Order]:
    """Two steps, of which each leaves what ``more["gives"]`` has for it."""
    gives = more.pop("gives", {})
    return Runbook(
        name="count",
        title="count",
        summary="Count.",
        helps={"plan": "Plan it.", "run": "Do it."},
        order=Order,
        opens=lambda open_flow, order: nullcontext(SITE),
        plan=lambda opened, order, progress: document("planned"),
        look=lambda site, order, progress: document("looked at"),
        steps=tuple(
            Step(name, name, lambda *_, name=name: gives.get(name, 0), leaves=bool)  # type: ignore[misc]
            for name in ("one", "two")
        ),
        reported=("two",),
        outcome=lambda site, order, ran: document(f"counted to {ran.gave['two']}"),
        check=refuse,
        **more,
    )


def asked(directory: Path, book: Runbook[Any, Order]) -> RunbookRequest:
    place = replace(deployment(), ledger=ledger_in(directory), report_conn_id="")
    return RunbookRequest(place, FLOW.name, book, Order(reason="why", by="ada"))


def test_the_last_step_that_was_named_fails_where_it_left_something(tmp_path: Path) -> None:
    """Not one before it: the others are to be taken. The order was looked at by the question, and is refused no more."""
    shown: list[str] = []
    left = asked(tmp_path, counting(gives={"one": 3, "two": 4}))
    take(left, "one", ("one", "two"), 0.0, "run", shown.append)
    with pytest.raises(Incomplete, match="its step 'two' has left something"):
        take(left, "two", ("one", "two"), 0.0, "run", shown.append)
    with pytest.raises(Incomplete, match="its step 'one' has left something"):
        take(left, "one", ("one",), 0.0, "run", shown.append)
    take(asked(tmp_path, counting()), "two", ("two",), 0.0, "run", shown.append)
    assert not shown
    take(left, "two", (), 0.0, "run", shown.append)  # of a whole run the report says it
    assert "counted to 4" in kept(shown[0], ledger_in(tmp_path))


def test_a_position_that_has_expired_is_no_reason_against_an_undo(tmp_path: Path) -> None:
    """Whoever is asked is told."""
    move = GroupMove("billing", "east.orders", 0, "failover-x", before=5, after=9, time_ms=1, metadata_before="")
    groups = [PutBack(move, -1, "", "west")]

    def undone(*reasons: str) -> RunbookRequest:
        made = shown_undo("count", FLOW.name, "", reasons, "leave it", [put_back_section(groups)], groups)
        nobody: Any = None
        return asked(tmp_path, counting(undo=Undo("", "", "", look=lambda *_: made, do=nobody)))

    assert "- **warn** " in ask_undo(undone()).body
    with pytest.raises(CannotUndo) as refused:
        ask_undo(undone("others have written"))
    assert (refused.value.reasons, refused.value.way_out) == (("others have written",), "leave it")


def test_a_page_of_any_verb_is_among_those_that_the_console_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runbooks, "opened_flow", lambda *_: nullcontext(SITE))
    undo = Undo("", "", "", look=lambda *_: document("to be undone"), do=lambda *_: document("undone"))
    book = asked(tmp_path, counting(rehearse=lambda *_: document("all is well"), part=lambda order: "shop", undo=undo))
    plan(book, "plan", (), "planned", lambda page: None)
    rehearse(book, "rehearsed", lambda page: None)
    take(book, "two", (), 0.0, "taken", lambda page: None)
    shown: list[str] = []
    take_back(book, "undone", shown.append)
    assert "by ada: why" in kept(shown[0], ledger_in(tmp_path))
    with Ledger(ledger_in(tmp_path)) as ledger:
        found = {each["kind"]: each["name"] for each in reports_of(pages_of(ledger.engine, FLOW.name))}
    assert found == {
        "count-plans": "planned",
        "count-shop-rehearsals": "rehearsed",
        "counts": "taken",
        "count-undos": "undone",
    }


def test_a_rehearsal_of_any_runbook_is_kept_and_fails_where_it_would_go_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runbooks, "opened_flow", lambda *_: nullcontext(SITE))
    shown: list[str] = []
    good = counting(rehearse=lambda opened, order, progress: document("all is well"))
    rehearse(asked(tmp_path, good), "run", shown.append)
    assert shown == ["count-rehearsals/east->west/run.html"] and "all is well" in kept(shown[0], ledger_in(tmp_path))
    bad = replace(good, rehearse=lambda *_: document("not well", "it burns"), part=lambda order: "shop")
    with pytest.raises(RehearsalFailed, match=r"a count of 'shop' would go wrong now.*\nit burns"):
        rehearse(asked(tmp_path, bad), "run", shown.append)
    assert shown[1] == "count-shop-rehearsals/east->west/run.html" and "not well" in kept(shown[1], ledger_in(tmp_path))

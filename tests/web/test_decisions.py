"""What the console says of what waits for a person, of what people have decided and frozen, and of reports."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from airmirror.ledger import Ledger, pages
from airmirror.ledger.approvals import Answered, PendingQuestion, note_answer, note_question
from airmirror.ledger.pages import PagePlace, keep_document
from airmirror.on_airflow.question import OPTIONS
from airmirror.report.document import Document
from airmirror.web.console import flow
from airmirror.web.console.flow import MOST_REPORTS
from airmirror.wire.mappings import Action, Decision
from airmirror.wire.owners import WHOLE, Change, OrderScope, Owners, Signed, changed
from ledger.test_ledger import entries, load
from support.console import DAG, FLOW, HOSTILE, RUN, Questions, Viewer, asked, decide, fill, hold_many
from support.ledgers import mapping


def test_decisions_name_each_answer_with_its_cost_and_command(client: TestClient, ledger: Ledger, now: int) -> None:
    fill(ledger, now)
    (waiting,) = asked(client, "/console/api/decisions")["flows"]
    (held,) = waiting["held"]
    assert (held["topic"], held["partition"], held["first"], held["last"], held["records"]) == ("orders", 1, 0, 49, 50)
    assert [option["name"] for option in waiting["options"]] == [option.name for option in OPTIONS]
    assert all(option["does"] and option["costs"] and "{" not in option["does"] for option in waiting["options"])
    commands = {option["name"]: option["commands"] for option in waiting["options"]}
    assert commands["Accept the loss"] == [
        "airmirror reset --topic orders --partition 1 --accept-loss --flow 'east->west'"
    ]
    assert commands["Verify again"] == ["airmirror hold release orders --partition 1 --flow 'east->west' --reason '…'"]
    assert commands["Keep it held"] == []
    assert (
        waiting["ask"] == "airflow dags trigger decide.east.west"
    )  # about all of it, also what the page has no place for
    assert waiting["required_actions"] == "dags/decide.east.west/required_actions"
    (person,) = waiting["held_by_people"]
    assert person["by"] == "ann" and "hold release payments --partition 0" in person["command"]


def test_what_a_question_is_about_is_told_by_the_ledger(client: TestClient, ledger: Ledger, now: int) -> None:
    """Not by XCom, where whoever may trigger could write what those who answer would believe."""
    fill(ledger, now)
    for run in ("incident__1", "incident__2"):
        Questions().ask(ledger, run, [["orders", 1, 49]])
    elsewhere = PendingQuestion(
        "east->west", "failback.east.west manual__1", "plan", "", json.dumps([{}, None]), int(time.time() * 1000)
    )
    note_question(ledger.engine, elsewhere)
    given = Answered("", "Let it pass", "known", "ann", "Ann", now)
    note_answer(ledger.engine, "east->west", "decide.east.west incident__2", "ask", given)
    (waiting,) = asked(client, "/console/api/decisions")["flows"]
    (question,) = waiting["asked"].items()
    assert question[0] == "incident__1" and question[1]["about"] == [["orders", 1, 49]] and question[1]["is_held"]


def test_a_question_has_its_own_partitions_and_commands(client: TestClient, ledger: Ledger) -> None:
    """What comes after the first hundred too, which a question about the rest is of."""
    hold_many(ledger, 150)
    rest = [["many", number, -1] for number in range(100, 150)]
    Questions().ask(ledger, "rest", rest)
    Questions().ask(ledger, "old", [["many", 1, 7]])
    (waiting,) = asked(client, "/console/api/decisions")["flows"]
    question = waiting["asked"]["rest"]
    assert question["about"] == rest and question["is_held"]
    numbers = [["many", item["partition"], item["last"]] for item in waiting["held"]]
    assert numbers[:50] == rest and len(numbers) == 100 and waiting["held_in_all"] == 150
    (command,) = question["commands"]["Accept the loss"]
    named = [int(number) for number in re.findall(r"--partition (\d+)", command)]
    assert named == list(range(100, 150)), "not those that are kept held"
    assert waiting["asked"]["old"]["is_held"] is False and not any(waiting["asked"]["old"]["commands"].values())


def test_what_is_decided_waits_for_the_next_run_and_is_not_called_failing(
    client: TestClient, ledger: Ledger, viewer: Viewer, now: int
) -> None:
    fill(ledger, now)
    viewer.red[DAG], later = RUN, now + 3_600_000
    decide(ledger, later)
    (flow,) = asked(client, "/console/api/overview")["flows"]
    told = {"topic": "orders", "partition": 1, "action": "let_pass", "by": "ann", "reason": "the archive"}
    assert (flow["state"], flow["red_run"], flow["stopped"], flow["failing"]) == ("decided", RUN, False, 0)
    assert flow["decided"] == [told | {"time_ms": later}]
    page, decisions = asked(client, FLOW), asked(client, "/console/api/decisions")
    people = {row["window"]: row["let_pass"] for row in page["windows"] if row["let_pass"]}
    assert people == {f"{RUN}#1-0009": ["ann"]}, "what a person has let pass has not passed"
    assert page["failing"] == [] and page["summary"]["decided"] == flow["decided"]
    assert decisions["decided"] == [{"flow": "east->west", "dag_id": DAG, "decided": flow["decided"]}]
    assert asked(client, f"{FLOW}/partition?topic=orders&partition=1")["failing"] == []
    (waiting,) = decisions["flows"]
    assert (waiting["held"], waiting["failing"], len(waiting["held_by_people"])) == ([], [], 1)
    viewer.red[DAG] = "the-next-run"  # of which the ledger has no window: nobody can have decided about that
    (flow,) = asked(client, "/console/api/overview")["flows"]
    assert (flow["state"], flow["stopped"], flow["red_run"]) == ("failing", True, "the-next-run")


def test_what_people_let_pass_stays_so_after_many_other_decisions(
    client: TestClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after three full questions, and the holds of another day: only a few decisions are listed."""
    monkeypatch.setattr(flow, "MOST_MARKS", 2)
    passed = [mapping(0, 10, topic="many", partition=number) for number in range(3)]
    let_pass = Decision("many", 0, time_ms=1000, action=Action.LET_PASS, offset=10, reason="known", by="ann")
    answers = [replace(let_pass, partition=number) for number in range(3)]
    holds = [replace(each, time_ms=1001, action=Action.HOLD) for each in answers]
    load(ledger.flow("east->west"), entries(*passed, *answers, *holds))
    page = asked(client, FLOW)
    assert [row["let_pass"] for row in page["windows"]] == [["ann"] * 3] and len(page["decisions"]) == 2


def test_a_topic_that_was_created_again_since_was_let_pass_by_nobody(client: TestClient, ledger: Ledger) -> None:
    """The same offsets of the old topic were: a person decides about what is there, and not about what comes."""
    let_pass = Decision("many", 0, time_ms=999, action=Action.LET_PASS, offset=10, reason="known", by="ann")
    load(ledger.flow("east->west"), entries(mapping(0, 10, topic="many"), let_pass))
    assert [row["let_pass"] for row in asked(client, FLOW)["windows"]] == [[]]


def test_a_decision_counts_for_the_run_that_was_before_it_only(
    client: TestClient, ledger: Ledger, viewer: Viewer, now: int
) -> None:
    fill(ledger, now)
    viewer.red[DAG] = RUN
    decide(ledger, now - 3_600_000)  # earlier than the window's end, and than the failure
    (flow,) = asked(client, "/console/api/overview")["flows"]
    assert (flow["state"], flow["decided"], flow["failing"]) == ("failing", [], 1)
    assert [each["partition"] for each in asked(client, FLOW)["failing"]] == [1]
    ledger.flow("east->west").note_window(
        "another", {}, passed=lambda key: True
    )  # no partition fails by itself any more
    (flow,) = asked(client, "/console/api/overview")["flows"]
    assert (flow["state"], flow["stopped"], flow["decided"], flow["failing"]) == ("failing", True, [], 0)


def test_a_frozen_flow_says_by_whom_and_why_and_reports_are_led_to(
    client: TestClient, ledger: Ledger, now: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Document("failover", "east->west", "nothing is lost", True, {}, ())
    fill(ledger, now)
    signed = Signed("freeze-1", 99, now, f"failed over {HOSTILE}", "ann")
    load(
        ledger.flow("east->west"),
        entries(*changed(Owners(), Change.FREEZE, [WHOLE], signed, scope=OrderScope.FLOW), start=100),
    )
    for kind in ("failovers", "rehearsals"):
        for number in range(MOST_REPORTS + 2):
            monkeypatch.setattr(pages, "now_ms", lambda number=number: 1000 * number)
            keep_document(ledger.engine, PagePlace(kind, "east->west"), f"manual__{number}", plan)
    page = asked(client, FLOW)
    assert page["summary"]["state"] == "frozen"
    (frozen,) = page["summary"]["frozen"]
    assert (frozen["topic"], frozen["by"], frozen["time_ms"]) == (WHOLE, "ann", now) and HOSTILE in frozen["reason"]
    assert [(each["kind"], each["name"]) for each in page["reports"]] == [
        (kind, f"manual__{number}") for number in (4, 3, 2) for kind in ("failovers", "rehearsals")
    ]
    assert page["reports"][0]["page"] == "airmirror/pages/failovers/east-%3Ewest/manual__4.html"
    assert page["reports"][0]["time_ms"] == 4_000

"""The question to decide: readable Markdown, of what is really held, with nothing in it that a stranger could shape."""

from __future__ import annotations

import re

from airmirror.flows.decisions import HeldRange
from airmirror.on_airflow.question import OPTIONS, question, runs_about
from airmirror.report.markdown import MOST_REASON, escape
from airmirror.wire.mappings import Action, Decision

HOSTILE = "a | b\n```\n### Approved by [ticket](http://evil) <b> ![x](//evil/p.png) www.evil.example *x* ~~y~~ a@b.c"


def held(**changes: object) -> HeldRange:
    given = {
        "topic": "orders",
        "partition": 3,
        "first": 314,
        "last": 1338,
        "records": 1025,
        "since_ms": 1_763_755_830_000,
        "reason": "copied is not met, found 25 (suite mine: Stay quiet.)",
        "window": "scheduled__2026-11-21#verify#1-ab",
    }
    return HeldRange(**(given | changes))  # type: ignore[arg-type]


def test_partitions_are_a_table_and_every_answer_is_explained() -> None:
    lines = question([held(), held(partition=4)], "east->west").splitlines()
    rows = [line for line in lines if line.startswith("| orders |")]
    assert [row.split(" | ")[1:5] for row in rows] == [
        ["3", "314 to 1,338", "1,025", "2025-11-21 20:10:30"],
        ["4", "314 to 1,338", "1,025", "2025-11-21 20:10:30"],
    ]
    assert "Stay quiet." in rows[0] and any("scheduled" in line for line in lines)
    for option in OPTIONS:
        (row,) = (line for line in lines if f"**{option.name}**" in line)
        assert option.costs.format(target="west") in row and ("can't be undone" in row) == option.is_final
    assert {option.name for option in OPTIONS if not option.is_final} == {"Verify again", "Keep it held"}
    assert "west" in "\n".join(lines) and "{" not in "\n".join(lines)


def test_no_text_breaks_out_of_its_cell() -> None:
    body = question([held(topic="![x](//evil)", reason=HOSTILE, window="x`](http://evil)#1")], "east->west")
    (row,) = (line for line in body.splitlines() if "Approved" in line)
    bare = re.sub(r"\\.", "", row)  # without what is escaped
    assert bare.count("|") == 7 and not re.search(r"[`<\[\]*~#]|://|www\.|@", bare)
    first = next(line for line in body.splitlines() if line.startswith("First held"))
    assert "`" not in re.sub(r"\\.", "", first)


def test_texts_are_bounded() -> None:
    assert len(escape("x" * 5000)) == MOST_REASON + 1
    assert escape("a\x00b\x1b[31m\n c") == "a b \\[31m c"


def test_a_question_is_another_one_after_a_decision_and_for_other_people() -> None:
    one, other = ["orders", 0, 49], ["payments", 1, 7]

    def decision(topic: str, partition: int, time_ms: int) -> Decision:
        return Decision(topic, partition, time_ms, action=Action.LET_PASS, offset=50, reason="why", by="ada")

    (first,) = runs_about([one, other], [decision("orders", 1, 5)], [""])
    assert runs_about([other, one], [], []) == (first,)
    assert first not in runs_about([one], [], []) and first not in runs_about([one, ["payments", 1, 8]], [], [])
    decided = [decision("orders", 0, 5), decision("payments", 1, 5), decision("orders", 0, 9)]
    assert [len(set(runs_about([one, other], decided[:count], []))) for count in range(4)] == [1, 2, 2, 3]
    newest, _, oldest = runs_about([one, other], decided, [])
    assert oldest == first and runs_about([one, other], decided[:2], []) == runs_about([one, other], decided, [])[1:]
    named = runs_about([one, other], decided, ["bob", "ann"])
    assert named == runs_about([one, other], decided, ["ann", "bob"]) and newest not in named
    many = [decision("orders", 0, time_ms) for time_ms in range(1, 99)]
    assert runs_about([one, other], many, [])[-1] == first, "what is asked of Airflow has an end"
    assert len(runs_about([one, other], many, [])) == 11

"""What a plan says for people: what matters stands out, and nothing is called complete that is not there."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
import typer
from rich.text import Text

from airmirror.cli import plans
from airmirror.cli.plans import finding_lines
from airmirror.report.document import Document, Finding, Level
from airmirror.runbooks.failback.plan import FailbackPlan
from airmirror.runbooks.failback.shown import shown_plan as shown_failback
from airmirror.runbooks.failover.partitions import PartitionPoint
from airmirror.runbooks.failover.plan import FailoverPlan
from airmirror.runbooks.failover.shown import FailoverOutcome, shown_outcome, shown_plan
from airmirror.runbooks.migration.plan import MigrationPlan
from airmirror.runbooks.migration.shown import shown_plan as shown_migration
from airmirror.runbooks.moving import PutBack
from airmirror.runbooks.shown import shown_undo
from airmirror.runbooks.takeover.copies import Continued
from airmirror.runbooks.takeover.history import Incident
from airmirror.runbooks.takeover.plan import TakeoverPlan
from airmirror.runbooks.takeover.shown import shown_plan as shown_takeover
from support.large import made

TAKEN = made(Continued, error=None)
LOST, TWICE = ({TAKEN.key: [made(Incident, is_loss=is_loss)]} for is_loss in (True, False))


def test_an_answer_does_not_repeat_its_question() -> None:
    said = finding_lines(
        [Finding("ok", "nothing is held", "nothing is"), Finding("stop", "all is well", "no", "mend it")]
    )
    assert [each.plain for each in said] == ["ok   nothing is held", "stop all is well: no; mend it"]


def findings(*levels: Level) -> tuple[Finding, ...]:
    return tuple(Finding(each, "all is well", "no") for each in ("ok", *levels))


PLANS: list[tuple[Document, int]] = [
    (
        shown_takeover(made(TakeoverPlan, partitions=(TAKEN,), histories=TWICE)),
        0,
    ),  # MirrorMaker 2 runs, of which it warns
    (shown_takeover(made(TakeoverPlan, partitions=(TAKEN,), histories=LOST)), 1),
    (shown_takeover(made(TakeoverPlan, histories={})), 1),
    (shown_undo("failover", "east->west", "", (), "", (), (made(PutBack, now=-1),)), 0),
    (shown_undo("failover", "east->west", "", ("others have written",), "", (), ()), 1),
]
for levels, status in (((), 0), (("warn",), 0), (("warn", "stop"), 1)):
    given = findings(*levels)
    PLANS += [
        (shown_plan(made(FailoverPlan, findings=given)), status),
        (shown_failback(made(FailbackPlan, findings=given)), status),
        (shown_migration(made(MigrationPlan, rules=given)), status),
    ]


@pytest.mark.parametrize(("shown", "status"), PLANS)
def test_a_plan_ends_with_1_where_a_line_begins_with_stop(
    shown: Document, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) if status else nullcontext():
        plans.end(shown, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("stop ") for line in lines) is bool(status), lines


def test_who_has_undone_sees_which_groups_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    """While the findings of a failover that was carried out are on its page: they are of how things are now."""
    undone, over = PLANS[3][0], shown_outcome(made(FailoverOutcome, plan=made(FailoverPlan, findings=findings("warn"))))
    for shown, warns in ((replace(undone, by="ada"), True), (over, False)):
        plans.show_document(shown)
        assert any(line.startswith("warn ") for line in capsys.readouterr().out.splitlines()) is warns


@pytest.mark.parametrize(("verified", "said"), [(0, "not known"), (7, "2026-11-18 11:06:40 UTC")])
def test_what_is_not_verified_at_all_is_complete_to_no_time(
    verified: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[object] = []
    monkeypatch.setattr(plans, "print_all", lambda _, *parts: shown.extend(parts))
    plans.show_document(shown_plan(made(FailoverPlan, partitions=(made(PartitionPoint, verified_end=verified),))))
    (table,) = (each for each in shown if "complete to" in getattr(each, "columns", ()))
    assert table.rows[0][-1] == Text(said)  # type: ignore[attr-defined]


def test_applications_are_told_where_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr(plans, "print_all", lambda _, *parts: shown.extend(parts))
    plans.show_document(shown_outcome(made(FailoverOutcome, servers=("kafka.west:9092",))))
    assert any("bootstrap.servers = kafka.west:9092" in getattr(each, "title", "") for each in shown)

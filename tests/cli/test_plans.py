"""What a plan says for people: what matters stands out, and nothing is called complete that is not there."""

from __future__ import annotations

import pytest
from rich.text import Text

from airmirror.cli import plans
from airmirror.cli.plans import finding_lines
from airmirror.report.document import Finding
from airmirror.runbooks.failover.outcome import FailoverOutcome
from airmirror.runbooks.failover.partitions import PartitionPoint
from airmirror.runbooks.failover.plan import FailoverPlan
from airmirror.runbooks.failover.shown import shown_outcome, shown_plan
from support.large import made


def test_an_answer_does_not_repeat_its_question() -> None:
    said = finding_lines(
        [Finding("ok", "nothing is held", "nothing is"), Finding("stop", "all is well", "no", "mend it")]
    )
    assert [each.plain for each in said] == ["ok   nothing is held", "stop all is well: no; mend it"]


@pytest.mark.parametrize(("verified", "said"), [(0, "not known"), (7, "2026-11-18 11:06:40 UTC")])
def test_what_is_not_verified_at_all_is_complete_to_no_time(
    verified: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[object] = []
    monkeypatch.setattr(plans, "show", lambda _, *parts: shown.extend(parts))
    plans.show_document(shown_plan(made(FailoverPlan, partitions=(made(PartitionPoint, verified_end=verified),))))
    (table,) = (each for each in shown if "complete to" in getattr(each, "columns", ()))
    assert table.rows[0][-1] == Text(said)  # type: ignore[attr-defined]


def test_applications_are_told_where_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr(plans, "show", lambda _, *parts: shown.extend(parts))
    plans.show_document(shown_outcome(made(FailoverOutcome, servers=("kafka.west:9092",))))
    assert any("bootstrap.servers = kafka.west:9092" in getattr(each, "title", "") for each in shown)

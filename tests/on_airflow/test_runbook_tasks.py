"""The work of a runbook's tasks, of one that only counts: what is left is a red task, what is approved is not refused."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.tasks.runbooks import Asked, take
from airmirror.report.document import Document, Section
from airmirror.runbooks.errors import Incomplete, NoSuchStep
from airmirror.runbooks.runbook import Order, Runbook, Step

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


def asked(directory: Path, book: Runbook[Any, Order]) -> Asked:
    place = replace(deployment(), data_docs=directory, report_conn_id="")
    return Asked(place, FLOW.name, book, Order(reason="why", by="ada"))


def test_the_last_step_that_was_named_fails_where_it_left_something(tmp_path: Path) -> None:
    """Not one before it: the others are to be taken. The order was looked at by the question, and is refused no more."""
    shown: list[Path] = []
    left = asked(tmp_path, counting(gives={"one": 3, "two": 4}))
    take(left, "one", ("one", "two"), 0.0, "run", shown.append)
    with pytest.raises(Incomplete, match="its step 'two' has left something"):
        take(left, "two", ("one", "two"), 0.0, "run", shown.append)
    with pytest.raises(Incomplete, match="its step 'one' has left something"):
        take(left, "one", ("one",), 0.0, "run", shown.append)
    take(asked(tmp_path, counting()), "two", ("two",), 0.0, "run", shown.append)
    assert not shown
    take(left, "two", (), 0.0, "run", shown.append)  # of a whole run the report says it
    assert "counted to 4" in shown[0].read_text()

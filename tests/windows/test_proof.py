"""What a gate holds says whether the copy is proven equal: whoever decides must not copy again what is right."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.windows.findings import GateRow, examine
from airmirror.windows.judging import _proof
from support.flows import a_flow
from support.large import made
from support.ledgers import mapping

RIGHT: dict[str, Any] = dict.fromkeys(("lost", "gaps", "order_violations", "unexpected_holes", "digest_differences"), 0)
RIGHT |= {"target_records": 2_000, "copied": 2_000}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "every record was read back and is equal"),
        ({"target_records": 1_999}, "the copy is not equal"),
        *(({name: 1}, "the copy is not equal") for name in RIGHT if name not in ("target_records", "copied")),
        ({"digest_differences": None}, "not read back: whether the copy is equal is not known"),
        ({"target_records": None}, "not read back: whether the copy is equal is not known"),
    ],
)
def test_the_proof_is_told_with_what_is_held(facts: dict[str, Any], said: str) -> None:
    assert _proof(made(GateRow, **RIGHT | facts)) == said


@pytest.mark.parametrize(("compacted", "wrong"), [({}, False), ({"orders": True}, False), ({"orders": False}, True)])
def test_holes_of_a_topic_that_is_gone_by_now_are_no_loss(compacted: dict[str, bool], wrong: bool) -> None:
    """Its slot has asked, before it committed them, whether the topic may have any."""
    mirror: Any = SimpleNamespace(flow=a_flow("east"), index=SimpleNamespace(verified=dict))
    record = replace(mapping(0, 10), copied=8, holes=2, ranges=mapping(0, 8).ranges)
    (found,) = examine(mirror, [record], trusted={"w1"}, compacted=compacted, watermarks={})
    assert (found.error is not None, found.unexpected_holes) == (wrong, 2 * wrong)

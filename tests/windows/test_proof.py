"""What a gate holds says whether the copy is proven equal: whoever decides must not copy again what is right."""

from __future__ import annotations

from typing import Any

import pytest

from airmirror.windows.findings import GateRow
from airmirror.windows.judging import _proof
from support.large import made

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

"""Answers of executors are data: every error of ours survives it, and nothing of a stranger's is run or believed."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
from collections.abc import Mapping
from typing import Any, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

import airmirror.slot.attempts  # noqa: F401
from airmirror.errors import AirmirrorError
from airmirror.on_spark.results import LONGEST, BadAnswer, SlotError, _kinds, decode, encode, encode_error
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Outcome, SlotResult
from airmirror.slot.errors import PartitionFailed

ROOMS = ("airmirror.slot.", "airmirror.windows.", "airmirror.clusters.", "airmirror.wire.", "airmirror.native.")
NOT_IN_SLOTS = ("airmirror.clusters.admin.acls",)
ORDERS = TopicPartition("orders", 3)
EXAMPLES: dict[Any, Any] = {
    str: "text",
    int: 7,
    float: 1.5,
    bool: True,
    TopicPartition: ORDERS,
    tuple[str, ...]: ("a", "b"),
    tuple[int, ...]: (1, 2),
    tuple[tuple[int, ...], ...]: ((1, 2, 3),),
}


def errors() -> list[AirmirrorError]:
    """One of each kind that a slot may have: of the engine, the connections and the formats."""
    found = []
    for kind in _kinds(AirmirrorError):
        if kind.__module__.startswith(ROOMS) and kind.__module__ not in NOT_IN_SLOTS:
            hints = get_type_hints(kind)
            if any(get_origin(hint) is Mapping for hint in hints.values()):
                continue
            found.append(kind(**{field.name: EXAMPLES[hints[field.name]] for field in dataclasses.fields(kind)}))
    return found


def result(error: AirmirrorError | None = None) -> SlotResult:
    return SlotResult(*ORDERS, Outcome.FAILED if error else Outcome.DONE, 5, 0.25, error, 1.5, 2)


@pytest.mark.parametrize("error", errors(), ids=lambda error: type(error).__name__)
def test_every_error_of_a_slot_comes_back_as_it_was(error: AirmirrorError) -> None:
    (back,) = decode(encode([result(error)]), [ORDERS])
    assert type(back.error) is type(error) and vars(back.error) == vars(error)
    assert (str(back.error), back.error.transient) == (str(error), error.transient)
    assert dataclasses.replace(back, error=None) == dataclasses.replace(result(error), error=None)
    assert isinstance(back.outcome, Outcome)


def test_there_are_many() -> None:
    assert len(errors()) > 30


def test_an_error_of_a_task_is_raised() -> None:
    with pytest.raises(PartitionFailed, match="why"):
        decode(encode_error(PartitionFailed("east", "orders", 3, "why")), [ORDERS])


def row(**told: object) -> bytes:
    """An answer of one row, and what it has in place of what fits."""
    fits = {"topic": "orders", "partition": 3, "outcome": "done", "position": 5, "seconds": 1.0, "error": None}
    return json.dumps({"results": [fits | {"limited": 0, "throttled": 0} | told]}).encode()


def test_what_fits_is_an_answer() -> None:
    assert decode(row(), [ORDERS]) == [SlotResult(*ORDERS, Outcome.DONE, 5, 1.0)]


class Executed:
    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (77,)


@pytest.mark.parametrize(
    "answer",
    [
        pickle.dumps(Executed()),
        b"",
        b"[]",
        b"{}",
        b'{"results": 1}',
        b'{"results": [[1]]}',
        b'{"results": [{"topic": "orders"}]}',
        b'{"error": {}}',
        b"\xff",
        b"[" * 100_000,
        row(position="5"),
        row(outcome="gone"),
        row(seconds="1.0"),
        row(limited="0"),
        row(partition=True),
    ],
)
def test_what_is_no_answer(answer: bytes) -> None:
    with pytest.raises(BadAnswer):
        decode(answer, [ORDERS])


def test_only_partitions_that_were_asked_for() -> None:
    with pytest.raises(BadAnswer, match="1 partitions"):
        decode(encode([result()]), [TopicPartition("orders", 4)])


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("os.system", {}),
        ("subprocess.Popen", {"args": "id"}),
        ("airmirror.slot.errors.PartitionFailed", {"alias": "east"}),
        ("airmirror.slot.errors.PartitionFailed", {"alias": [], "topic": "t", "partition": 0, "reason": "r"}),
    ],
)
def test_an_error_of_another_name_or_with_other_facts_is_its_text(name: str, facts: dict[str, object]) -> None:
    plain = {"name": name, "facts": facts, "text": "said" * LONGEST, "transient": True}
    (back,) = decode(row(outcome="failed", error=plain), [ORDERS])
    assert isinstance(back.error, SlotError) and back.error.transient and len(str(back.error)) == LONGEST
    assert pickle.loads(pickle.dumps(back.error)).text == back.error.text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda of: st.lists(of) | st.dictionaries(st.text(), of)
    )
)
def test_whatever_it_is(value: object) -> None:
    for answer in (value, {"results": value}, {"results": [value]}, {"error": value}):
        try:
            decode(json.dumps(answer).encode(), [ORDERS])
        except BadAnswer:
            continue

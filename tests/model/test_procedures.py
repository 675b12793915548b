"""Procedures that meet: every state is as it should be, and each rule that is taken away is missed."""

from __future__ import annotations

import pytest

from model.__main__ import PAGE
from model.explore import Explored
from model.page import named_scopes
from model.procedure_scopes import (
    BROKEN,
    CUT_OVER_KILLED,
    CUT_OVER_MEANWHILE,
    DEEP,
    FAILBACK_UNDONE,
    FAILBACKS_MEET,
    HANDBACK_OF_RETURN,
    MEANT,
    MOVE,
    MOVE_UNDONE,
    OVER_MOVED,
    OVER_RETURN,
    OVER_UNDONE_TWICE,
    QUICK,
    RESET_OF_RETURN,
    UNDONE,
    UNFROZEN,
    explored,
)
from model.procedures import DONE, Meeting, is_order, order
from model.scopes import BROKEN as BROKEN_WINDOWS
from model.scopes import DEEP as WINDOWS
from model.scopes import QUICK as WINDOWS_QUICK

pytestmark = pytest.mark.timeout(900)

LARGE = {  # 5,000 states and more
    each.name
    for each in (
        CUT_OVER_KILLED,
        CUT_OVER_MEANWHILE,
        FAILBACK_UNDONE,
        FAILBACKS_MEET,
        MOVE,
        MOVE_UNDONE,
        OVER_MOVED,
        OVER_RETURN,
        OVER_UNDONE_TWICE,
        UNDONE,
        UNFROZEN,
    )
}


NEVER_DONE: dict[str, set[str]] = {  # orders that a meeting refuses, however it goes
    RESET_OF_RETURN.name: {"reset 1 for shop"},
    HANDBACK_OF_RETURN.name: {"hand-back"},
}
MILLIONS = {  # of states, more than ``make test-all`` explores; ``make model`` explores three, and the second one to its end
    "a failover, a failback, and its undo",
    "a failover over a return, its undo, the move group's undo",
}


def never_done(meeting: Meeting, found: Explored) -> set[str]:
    """The orders of a meeting that take their last step in no state."""
    done = {words.partition(DONE)[2] for words in found.words}
    return {order(each) for each in meeting.first.processes if is_order(each)} - done


def marks(meeting: Meeting) -> list[pytest.MarkDecorator]:
    """``make test`` leaves out what explores a large meeting."""
    return [pytest.mark.long] if meeting.name in LARGE else []


@pytest.mark.parametrize("meeting", [pytest.param(each, id=each.name, marks=marks(each)) for each in QUICK])
def test_every_state_is_as_it_should_be(meeting: Meeting) -> None:
    found = explored(meeting, MEANT)
    assert found.whole, str(found)
    assert found.states > 50
    assert never_done(meeting, found) == NEVER_DONE.get(meeting.name, set())


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(each.meeting)) for name, each in BROKEN.items()])
def test_what_is_put_back_is_found(name: str) -> None:
    fault = BROKEN[name]
    found = explored(fault.meeting, fault.rules)
    assert found.wrong.startswith(fault.wrong), str(found)
    assert found.way


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("meeting", [each for each in DEEP if each not in QUICK], ids=lambda each: each.name)
def test_every_state_of_the_deep_meetings_is_as_it_should_be(meeting: Meeting) -> None:
    found = explored(meeting, MEANT, 1_000_000)
    assert not found.wrong and found.whole == (meeting.name not in MILLIONS), str(found)
    assert not found.whole or not never_done(meeting, found)


def test_the_page_has_what_make_test_explores_and_nothing_that_is_gone() -> None:
    """``make model`` adds what it explores besides."""
    found = list(named_scopes(PAGE.read_text()))
    assert len(found) == len(set(found))
    assert {each.name for each in (*WINDOWS_QUICK, *QUICK)} | BROKEN_WINDOWS.keys() | BROKEN.keys() <= set(found)
    assert set(found) <= {each.name for each in (*WINDOWS, *DEEP)} | BROKEN_WINDOWS.keys() | BROKEN.keys()

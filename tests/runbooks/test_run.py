"""The engine of runbooks, with steps that only remember: order, kills, some steps only, waiting for a lease, undo, dry runs."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from airmirror.cli import flow_options
from airmirror.cli.runbooks import commands_of
from airmirror.flows import leases
from airmirror.flows.holds import DecisionIncomplete
from airmirror.ledger import GroupOffset
from airmirror.partitions import TopicPartition
from airmirror.report.document import Document, Finding, Section
from airmirror.runbooks.errors import CannotUndo, NoSuchStep
from airmirror.runbooks.failback import steps as failback_steps
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.failback.returning import ReturnNotDrained
from airmirror.runbooks.failback.runbook import FAILBACK
from airmirror.runbooks.failover import steps as failover_steps
from airmirror.runbooks.failover.order import FailoverOrder, Way
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.failover.steps import FreezeFirst
from airmirror.runbooks.migration import reverse as reverse_flow
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.runbook import MIGRATION
from airmirror.runbooks.run import is_whole, rest, run, undo
from airmirror.runbooks.runbook import Order, Progress, Ran, Runbook, Step, Undo, option
from airmirror.runbooks.takeover.exact import ComparedCopies
from airmirror.runbooks.takeover.runbook import HANDBACK, TAKEOVER
from airmirror.windows.errors import FlowBusy
from airmirror.wire.owners import WHOLE, Change, OrderScope, Owners, Signed, after, changed
from support.large import made

RUNBOOKS: tuple[Runbook[Any, Any], ...] = (FAILOVER, FAILBACK, MIGRATION, TAKEOVER, HANDBACK)
WORDS = ("--reason", "why", "--by", "ada")
Site = Any


class Killed(BaseException):
    """The process is gone."""


def flow_of(name: str, longest_ms: int = 0) -> Any:
    return SimpleNamespace(name=name, window=SimpleNamespace(longest_ms=longest_ms))


@dataclass(frozen=True, kw_only=True)
class CountOrder(Order):
    """How high it counts; ``refused``: as things are it must not begin."""

    fast: bool = option("Leave out the second step.", False)
    refused: bool = option("Let nothing begin.", False)


@dataclass
class World:
    """What is done stays done, whoever is killed. ``kill``: the step after whose work the process is killed."""

    done: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    kill: str = ""
    busy: int = 0
    of: str = "east->west"
    flow: Any = field(default_factory=lambda: flow_of("east->west"))

    def step(self, name: str) -> Callable[[Site, CountOrder, Progress], int]:
        def do(site: Site, order: CountOrder, progress: Progress) -> int:
            self.calls.append(name)
            if self.busy:
                self.busy -= 1
                raise FlowBusy(self.of, "w1", "another", 10)
            if name not in self.done:
                self.done.append(name)
                progress.line(f"{name} is done")
            if self.kill == name:
                raise Killed
            return len(self.done)

        return do


def document(headline: str, is_good: bool = True) -> Document:
    findings = [] if is_good else [Finding("stop", "it can be undone", "somebody has gone further")]
    return Document("count", "Count", headline, is_good, {}, [Section("rows", [{"a": 1}], "Rows")], findings=findings)


def counting(world: World, undoable: bool = True) -> Runbook[Any, CountOrder]:
    def refuse(site: Site, order: CountOrder) -> None:
        if order.refused:
            raise NoSuchStep("count", ("refused",), ())

    def undo(site: Site, order: CountOrder, progress: Progress) -> Document:
        if not undoable:
            raise CannotUndo("east->west", "count", "leave it", ("somebody has gone further",))
        world.done.clear()
        return document("undone")

    @contextmanager
    def opens(open_flow: Any, order: CountOrder) -> Iterator[World]:
        yield world

    return Runbook(
        name="count",
        title="count",
        summary="Count.",
        helps={"plan": "Plan it.", "run": "Do it."},
        order=CountOrder,
        opens=opens,
        plan=lambda opened, order, progress: document("planned"),
        look=lambda site, order, progress: document("looked at"),
        steps=(
            *(Step(name, name, world.step(name), leaves=lambda gave: gave == 2) for name in ("one", "two", "three")),
            Step("later", "", world.step("later"), apart=True),
        ),
        without=lambda flow, order: ("two",) if order.fast else (),
        reported=("two", "three"),
        outcome=lambda site, order, ran: document(f"counted to {ran.gave['three']}"),
        undo=Undo("Undo it.", "Take it back", "", lambda site, order: document("would be undone", undoable), undo),
        check=refuse,
        over=lambda site, order: "all is counted" if "later" in world.done else "",
    )


ORDER = CountOrder(reason="why", by="ada")


@pytest.mark.parametrize("killed", ["one", "two", "three"])
def test_a_run_that_is_killed_at_any_step_is_finished_by_the_next(killed: str) -> None:
    world = World(kill=killed)
    with pytest.raises(Killed):
        run(counting(world), world, ORDER)
    world.kill = ""
    lines: list[str] = []
    ran = run(counting(world), world, ORDER, progress=Progress(line=lines.append))
    assert world.done == ["one", "two", "three"] == list(ran.gave)
    assert len(lines) == 3 - world.done.index(killed) - 1, "what was done is not done again"


def test_an_order_has_steps_of_its_own_and_may_name_others() -> None:
    world, book = World(), None
    book = counting(world)
    ran = run(book, world, replace(ORDER, fast=True))
    assert world.calls == ["one", "three"] and is_whole(book, world.flow, replace(ORDER, fast=True), ran)
    assert rest(book, world.flow, ORDER, "three") == ["two", "three"]
    assert rest(book, world.flow, replace(ORDER, fast=True), "three") == ["three"]
    world.calls.clear()
    ran = run(book, world, ORDER, ("later", "two"))
    assert world.calls == ["two", "later"], "in the runbook's order"
    assert not is_whole(book, world.flow, ORDER, ran)
    with pytest.raises(NoSuchStep, match="there is no step four"):
        run(book, world, ORDER, ("one", "four"))
    assert world.calls == ["two", "later"]


def test_nothing_begins_without_a_person_a_reason_or_against_the_check() -> None:
    world = World()
    for order in (replace(ORDER, reason=" "), replace(ORDER, by="")):
        with pytest.raises(DecisionIncomplete):
            run(counting(world), world, order)
    with pytest.raises(NoSuchStep):
        run(counting(world), world, replace(ORDER, refused=True))
    assert world.calls == []
    world.done.append("later")
    assert run(counting(world), world, ORDER) == Ran({}, 0.0, "all is counted") and world.calls == []


def test_what_refuses_an_order_refuses_its_named_steps_and_none_that_people_have_approved() -> None:
    world, refused = World(), replace(ORDER, refused=True)
    with pytest.raises(NoSuchStep):
        run(counting(world), world, refused, ("two",))
    assert world.calls == []
    run(counting(world), world, refused, ("two",), is_approved=True)
    assert world.calls == ["two"]


def test_a_run_says_which_steps_have_left_something(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(done=["one"])
    assert run(counting(world), world, ORDER, ("one", "two")).left == ("two",)
    command = Command(monkeypatch, counting(world), world)
    for words, status in ((("one",), 0), (("later",), 0), (("two", "--json"), 1), (("two",), 1)):
        world.done[:] = ["one"]
        ended = command("run", *WORDS, "--yes", "--step", *words)
        assert ended.exit_code == status, words
    assert "Something is left by: two." in ended.stdout


LEFT = made(GroupOffset, reason="it has members")
STEPS_THAT_LEAVE: list[tuple[Runbook[Any, Any], str, Any, Any]] = [
    (FAILBACK, "rescue", 3, 0),
    (FAILBACK, "move_groups", [LEFT], []),
    (FAILOVER, "judge", [object()], []),
    (FAILOVER, "move_groups", [LEFT], [replace(LEFT, reason="")]),
    (TAKEOVER, "take_over", [SimpleNamespace(error=FreezeFirst("f", "w"))], [SimpleNamespace(error=None)]),
    (TAKEOVER, "history", [ComparedCopies(TopicPartition("t", 0), "east.t", (5, 5), None, "it is gone")], []),
]


@pytest.mark.parametrize(("book", "name", "left", "done"), STEPS_THAT_LEAVE)
def test_a_step_leaves_what_it_could_not_do(book: Runbook[Any, Any], name: str, left: Any, done: Any) -> None:
    (step,) = (each for each in book.steps if each.name == name)
    assert step.leaves(left) and not step.leaves(done)


def test_a_step_waits_until_the_lease_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "FIRST_SECONDS", 0.001)
    world, told = World(busy=3), list[str]()
    run(counting(world), world, ORDER, progress=Progress(told.append))
    assert world.calls == ["one"] * 4 + ["two", "three"] and sum("waits: " in each for each in told) == 3
    monkeypatch.setattr(leases, "LEAST_SECONDS", 0.01)
    monkeypatch.setattr(leases, "MARGIN_SECONDS", 0.01)
    world = World(busy=10**6)
    with pytest.raises(FlowBusy):
        run(counting(world), world, ORDER)


def test_a_step_waits_as_long_as_a_window_of_the_flow_that_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failback takes the lease of the reverse flow too, whose windows may take much longer, or less long."""
    monkeypatch.setattr(leases, "FIRST_SECONDS", 0.001)
    monkeypatch.setattr(leases, "LEAST_SECONDS", 0.01)
    monkeypatch.setattr(leases, "MARGIN_SECONDS", 0.01)
    hour = 3_600_000
    for own, reverse, of in ((0, hour, "west->east"), (hour, 0, "east->west")):
        world = World(busy=8, of=of, flow=flow_of("east->west", own))
        book = replace(counting(world), others=lambda site, ms=reverse: [flow_of("west->east", ms)])
        run(book, world, ORDER)
        assert world.calls.count("one") == 9, of
    for own, reverse, of in ((hour, 0, "west->east"), (0, hour, "east->west")):
        world = World(busy=10**6, of=of, flow=flow_of("east->west", own))
        with pytest.raises(FlowBusy):
            run(replace(counting(world), others=lambda site, ms=reverse: [flow_of("west->east", ms)]), world, ORDER)


def test_a_failback_and_a_migration_may_take_the_lease_of_the_reverse_flow() -> None:
    back: Any = SimpleNamespace(flow=flow_of("west->east"))
    forward: Any = SimpleNamespace(flow=flow_of("east->west"))
    for book in (FAILBACK, MIGRATION):
        assert [each.name for each in book.others(Pair(forward, back))] == ["west->east"]
        assert list(book.others(Pair(forward, None))) == []


def test_an_undo_waits_until_the_lease_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "FIRST_SECONDS", 0.001)
    world, told = World(done=["one"]), list[str]()
    book = counting(world)
    assert book.undo is not None
    busy, undone = iter([True, False]), book.undo.do

    def do(site: Site, order: CountOrder, progress: Progress) -> Document:
        if next(busy):
            raise FlowBusy("east->west", "w1", "another", 10)
        return undone(site, order, progress)

    waiting = replace(book, undo=replace(book.undo, do=do))
    assert undo(waiting, world, ORDER, Progress(told.append)).headline == "undone" and not world.done
    with pytest.raises(DecisionIncomplete):
        undo(waiting, world, replace(ORDER, reason=" "))
    assert len(told) == 1 and "waits: " in told[0]


class Command:
    """The commands of a runbook, with a flow that is not there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, book: Runbook[Any, Any], world: World) -> None:
        @contextmanager
        def opened_flow(*_: object, shows: bool) -> Iterator[World]:
            yield world

        monkeypatch.setattr(flow_options, "opened_flow", opened_flow)
        self.app = commands_of(book)

    def __call__(self, *words: str) -> Any:
        return CliRunner().invoke(self.app, words)


def test_a_dry_run_writes_nothing_and_an_undo_shows_before_it_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World()
    command = Command(monkeypatch, counting(world), world)
    dry = command("run", *WORDS)
    assert dry.exit_code == 0 and world.calls == []
    assert "looked at" in dry.stdout and "Nothing was written" in dry.stdout and "one, two, three" in dry.stdout
    done = command("run", *WORDS, "--yes", "--write", str(tmp_path / "count"))
    assert done.exit_code == 0 and "counted to 3" in done.stdout and (tmp_path / "count.json").exists(), done.output
    assert "would be undone" in command("undo", *WORDS).stdout and world.done
    undone = command("undo", *WORDS, "--yes", "--write", str(tmp_path / "undone"))
    assert "undone" in undone.stdout and "The report: " in undone.stdout and not world.done
    told = json.loads((tmp_path / "undone.json").read_text())
    assert (told["headline"], told["by"], told["reason"]) == ("undone", "ada", "why")
    some = command("run", *WORDS, "--step", "two", "--yes", "--json")
    assert some.exit_code == 0 and '"two is done"' in some.stdout and world.done == ["two"]
    assert command("run", *WORDS, "--step", "four", "--yes").exit_code == 2
    for refused in (("--yes",), ()):
        assert command("run", *WORDS, "--refused", "--step", "two", *refused).exit_code == 2, "as without --step"
    assert world.done == ["two"] and world.calls[-1] == "two"
    assert command("run", "--yes").exit_code == 2, "a reason is needed"
    assert command("plan").exit_code == 0 and command("rehearse").exit_code == 2


def test_an_undo_that_can_not_be_ends_with_its_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(done=["one"])
    command = Command(monkeypatch, counting(world, undoable=False), world)
    shown = command("undo", *WORDS)
    assert shown.exit_code == 1 and "somebody has gone further" in shown.stdout and world.done == ["one"]
    refused = command("undo", *WORDS, "--yes")
    assert refused.exit_code == 1 and "can't be undone" in refused.output and "leave it" in refused.output


@pytest.mark.parametrize("book", RUNBOOKS, ids=lambda book: book.name)
def test_what_a_runbook_names_is_there_and_takes_what_it_is_given(book: Runbook[Any, Any]) -> None:
    named: list[tuple[Any, int]] = [(book.plan, 3), (book.look, 3), (book.check, 2), (book.over, 2), (book.outcome, 3)]
    named += [(book.opens, 2), *((step.do, 3) for step in book.steps)]
    named += [(step.asks.shows, 3) for step in book.steps if step.asks and step.asks.shows]
    named += [(book.rehearse, 3)] if book.rehearse else []
    named += [(book.undo.look, 2), (book.undo.do, 3)] if book.undo else []
    for function, given in named:
        where, first = function.__qualname__, getattr(function, "first", ())
        if ":" in where:
            module, name = where.split(":")
            function = getattr(importlib.import_module(f"airmirror.runbooks.{module}"), name)
        signature(function).bind(*first, *range(given))
    names = [step.name for step in book.steps]
    assert len(set(names)) == len(names) and set(book.reported) <= set(names)


@pytest.mark.parametrize("way", ["planned", "disaster"])
@pytest.mark.parametrize("step", ["judge", "move_groups"])
def test_no_step_of_a_failover_comes_before_the_freeze(step: str, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged from the target alone, nothing of an open flow would ever be compared with its source."""
    world = World()
    monkeypatch.setattr(failover_steps, "unreachable", lambda opened: "" if way == "planned" else "it burns")
    monkeypatch.setattr(failover_steps, "owners_now", lambda opened: Owners())
    with pytest.raises(FreezeFirst, match=f"not frozen; .* --way {way} --step freeze"):
        run(FAILOVER, world, FailoverOrder(reason="why", by="ada", way=way), [step])
    signed, flow, topic = Signed("", 0, 0, "", ""), OrderScope.FLOW, OrderScope.TOPIC
    owners = after(Owners(), changed(Owners(), Change.FREEZE, [WHOLE, "bill"], signed, scope=flow))
    owners = after(owners, changed(owners, Change.UNFREEZE, ["shop"], signed, scope=topic))
    monkeypatch.setattr(failover_steps, "owners_now", lambda opened: owners)
    monkeypatch.setattr(failover_steps, "check_nothing_returns", lambda opened: None)
    with pytest.raises(FreezeFirst, match=f"not frozen: shop; .* --way {way} --step freeze"):
        run(FAILOVER, world, FailoverOrder(reason="why", by="ada", way=way), [step])


def test_groups_are_moved_back_after_the_return_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    pair = SimpleNamespace(
        flow=world.flow, forward=world, reverse=world, returning=lambda topics: {"east.orders": "orders"}, others=[]
    )
    monkeypatch.setattr(failback_steps, "owners_now", lambda opened: SimpleNamespace(returning=lambda states: {}))
    with pytest.raises(ReturnNotDrained, match=r"--topic orders --flow (.|\n)*east\.orders still returns"):
        run(FAILBACK, pair, FailbackOrder(reason="why", by="ada", topics=("orders",)), ["move_groups"])


@pytest.mark.parametrize(
    ("goes_back", "is_cut_over", "says", "not_said"),
    [
        (True, False, "when producers are cut over, west->east begins with the first record", "--reverse"),
        (
            False,
            False,
            "begins when producers are cut over with --reverse, or once they are: `airmirror",
            "first record",
        ),
        (False, True, "1 topic can return", "until then"),
    ],
)
def test_a_reverse_flow_that_is_prepared_says_when_it_begins(
    goes_back: bool, is_cut_over: bool, says: str, not_said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whatever way its step was taken: in a run with --reverse, or named alone, before or after the cut-over."""
    monkeypatch.setattr(reverse_flow, "bring_about", lambda *_: None)
    monkeypatch.setattr(reverse_flow, "check", lambda *_: {})
    ends = {"source": SimpleNamespace(alias="east"), "target": SimpleNamespace(alias="west")}
    opened: Any = SimpleNamespace(flow=SimpleNamespace(name="east->west", **ends))
    back: Any = SimpleNamespace(flow=SimpleNamespace(name="west->east"))
    move: Any = SimpleNamespace(name="shop", names={"orders": "east.orders"})
    order = MoveOrder(move="shop", reverse=goes_back)
    lines = list(reverse_flow.prepare(Pair(opened, back), move, order, print, is_cut_over=is_cut_over))
    told = "\n".join(lines)
    assert says in told and not_said not in told
    if not goes_back and not is_cut_over:
        assert "airmirror migration run --move shop --step reverse --reason '…' --yes --flow 'east->west'" in told

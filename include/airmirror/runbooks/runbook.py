"""A runbook: a procedure that people start and approve, as data. Commands and DAGs are made from it; declaring one loads little.

The functions that a runbook names are loaded when they are called (``later``): help and the parsing of a DAG file wait for none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from airmirror.tell import Tell, silent

if TYPE_CHECKING:
    from airmirror.config import Flow
    from airmirror.flows.prepare import Opened
    from airmirror.report.document import Document

Verb = Literal["plan", "run", "undo", "rehearse"]
OpenFlow = Callable[[str], AbstractContextManager["Opened"]]  # by its name; "": the one that was asked for


@dataclass(frozen=True)
class Progress:
    """Hears of a run: ``phase`` what goes on now, ``line`` what came of it, one line each."""

    phase: Tell = silent
    line: Tell = silent


SILENT = Progress()


@dataclass(frozen=True, kw_only=True)
class Order:
    """Who carries a runbook out, and why; both are empty where it is only looked at. Subclasses add its options (``option``)."""

    reason: str = ""
    by: str = ""


@dataclass(frozen=True)
class OrderOption:
    """An option of an order, for ``verbs``. ``type``: bool, str, float, a Literal of texts, or tuple for any number of texts.

    ``flag``: its name on the command line, without dashes; ``title``: in a form. ``is_required``: whoever runs it must choose;
    ``default`` is then only a proposal. ``is_asked``: forms ask for it too; else it is the command's alone. ``within``: the least
    and the most that a number may be. ``setting``: the setting of the flow that holds where a bool is not given (None).
    """

    help: str
    default: Any
    title: str = ""
    flag: str = ""
    verbs: tuple[Verb, ...] = ("run",)
    is_required: bool = False
    is_asked: bool = True
    within: tuple[float | None, float | None] = (None, None)
    setting: str = ""
    name: str = ""
    type: Any = None

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that it may be; none: any."""
        return get_args(self.type)


def option(help: str, default: Any, title: str = "", **more: Any) -> Any:
    """A dataclass field of an order that commands and forms offer; ``more``: as ``OrderOption`` has it."""
    return field(default=default, metadata={"option": OrderOption(help, default, title, **more)})


class Site(Protocol):
    """The place where a runbook is carried out: its flow, opened, and whatever else its steps need."""

    @property
    def flow(self) -> Flow: ...


S = TypeVar("S", bound=Site)
O = TypeVar("O", bound=Order)  # noqa: E741


@dataclass(frozen=True)
class Asking(Generic[S, O]):
    """A question to people before a step; it covers the steps after it up to the next question. ``yes``: the answer that
    continues.

    ``title``: what is asked, as *cut over consumers*, "": the runbook's. ``text``: Markdown, the first words of the question.
    ``shows``: the facts under it, None: those of ``Runbook.look``. ``of``: the flows whose people are asked.
    """

    yes: str
    text: Callable[[Flow, O], str]
    shows: Callable[[S, O, Progress], Document] | None = None
    of: Callable[[Flow], bool] = lambda flow: True
    title: str = ""


@dataclass(frozen=True)
class Step(Generic[S, O]):
    """A step. It reads again what is so now and does what is left: killed and run again, it does nothing twice. What it gives is
    for the outcome. ``does``: in a few words. ``leaves``: whether something is left, by what it returned. ``is_free``: it looks,
    or copies as every window does, so that no question covers it. ``apart``: it is only taken by an order that names it;
    ``is_offered``: in Airflow, where people are asked for it after the usual steps, also by their answer."""

    name: str
    does: str
    do: Callable[[S, O, Progress], Any]
    asks: Asking[S, O] | None = None
    leaves: Callable[[Any], bool] = lambda gave: False
    is_free: bool = False
    apart: bool = False
    is_offered: bool = False


@dataclass(frozen=True)
class Undo(Generic[S, O]):
    """The undo. ``look``: what it would do now; not good: it can't be done, its stops say why; no rows: nothing is to be
    done. ``do``: the same, done, or CannotUndo. ``yes``: the answer of people who want it."""

    help: str
    yes: str
    text: str
    look: Callable[[S, O], Document]
    do: Callable[[S, O, Progress], Document]


@dataclass(frozen=True)
class Runbook(Generic[S, O]):
    """A procedure. ``title``: its name in a sentence, as *fail over*; ``summary`` and ``helps``: of its commands.

    ``opens``: the context in which it is looked at, carried out and undone; ``others``: other flows whose leases it
    takes there. ``plan``: what it would mean, of the flow alone.
    ``look``: the same of an order, as a dry run and the first question show it. ``check`` raises what refuses the order as things
    are, before either, and before the first step.
    ``without``: the names of steps that an order leaves out. ``over``: why nothing is left to do; "": something is.
    ``reported``: steps whose results ``outcome`` takes, by their names; it is made of a run that took them all.
    ``part``: the part of the flow that an order is for: an answer for one part leaves those for others as they are.
    """

    name: str
    title: str
    summary: str
    helps: dict[Verb, str]
    order: type[O]
    opens: Callable[[OpenFlow, O], AbstractContextManager[S]]
    plan: Callable[[Opened, O, Progress], Document]
    look: Callable[[S, O, Progress], Document]
    steps: tuple[Step[S, O], ...]
    reported: tuple[str, ...]
    outcome: Callable[[S, O, Ran], Document]
    undo: Undo[S, O] | None = None
    rehearse: Callable[[Opened, O, Progress], Document] | None = None
    check: Callable[[S, O], None] = lambda site, order: None
    without: Callable[[Flow, O], Sequence[str]] = lambda flow, order: ()
    over: Callable[[S, O], str] = lambda site, order: ""
    others: Callable[[S], Sequence[Flow]] = lambda site: ()
    part: Callable[[O], str] = lambda order: ""

    def usual(self, flow: Flow, order: O) -> list[str]:
        """The names of the steps that an order takes when it names none, in order."""
        left_out = self.without(flow, order)
        return [step.name for step in self.steps if not step.apart and step.name not in left_out]

    def options(self, verb: Verb) -> list[OrderOption]:
        """The options that its order has for a verb, in order."""
        hints, found = get_type_hints(self.order), []
        for each in fields(self.order):
            given: OrderOption | None = each.metadata.get("option")
            if given is not None and verb in given.verbs:
                hint = hints[each.name]
                kind = tuple if get_origin(hint) is tuple else bool if hint == bool | None else hint
                title = given.title or each.name.replace("_", " ").capitalize()
                flag = given.flag or each.name.replace("_", "-")
                found.append(replace(given, name=each.name, type=kind, title=title, flag=flag))
        return found


@dataclass(frozen=True)
class Ran:
    """A run: the steps that were taken with what each has returned, and the seconds that it took. ``over``: why there was nothing
    to do; ``left``: the steps that have left something."""

    gave: dict[str, Any]
    seconds: float
    over: str = ""
    left: tuple[str, ...] = ()


def worded(text: str) -> Callable[[Flow, Order], str]:
    """The words of a question, in which ``{source}``, ``{target}`` and ``{order.…}`` are those that it is asked about."""
    return lambda flow, order: text.format(source=flow.source.alias, target=flow.target.alias, order=order)


def opens_flow(open_flow: OpenFlow, order: Order) -> AbstractContextManager[Opened]:
    """Open the flow that was asked for, and no other: the place of a runbook that needs one flow."""
    return open_flow("")


def later(where: str, *first: str) -> Callable[..., Any]:
    """The function ``module:name`` of this room, loaded when it is called; ``first``: what it is given first."""
    module, name = where.split(":")

    def call(*given: Any, **named: Any) -> Any:
        return getattr(importlib.import_module(f"airmirror.runbooks.{module}"), name)(*first, *given, **named)

    call.__qualname__ = where
    vars(call)["first"] = first
    return call

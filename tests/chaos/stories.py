"""The plan of a seed of procedures: a story of applications and commands, and the faults, each at a place of a command.

A place is a request of the command to either cluster: the n-th that writes in a step, before it arrives or when it was answered.
The same seed, the same plan.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from airmirror.runbooks.failback.runbook import FAILBACK
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.migration.runbook import MIGRATION
from airmirror.runbooks.runbook import Order, Runbook
from airmirror.runbooks.takeover.runbook import HANDBACK, TAKEOVER

Verb = Literal["run", "undo", "rehearse"]
# Acts of applications and of whoever runs them. write, read: where they are now; lose, find: the network of the source; window:
# of both flows; over, consumers over, back: applications start on the other cluster; copy: MirrorMaker 2 runs for a while.
Act = Literal["write", "read", "window", "lose", "find", "over", "consumers over", "back", "copy"]
Kind = Literal[
    "kill_driver",
    "end_driver",
    "lose",
    "cut",
    "refuse",
    "kill_node",
    "stop_node",
    "hijack",
    "window",
    "second_driver",
    "jump_clock",
    "fill_disk",
    "forget_producers",
]
End = Literal["west", "both"]

KINDS: tuple[Kind, ...] = get_args(Kind)
ALL_FROM = 2000  # seeds from here on know every kind; those before stay what they were, without the last three
LASTING = frozenset({"refuse", "stop_node", "kill_node", "jump_clock", "fill_disk", "forget_producers"})
BOOKS: dict[str, Runbook[Any, Any]] = {each.name: each for each in (FAILOVER, FAILBACK, MIGRATION, TAKEOVER, HANDBACK)}
WAIT = 2.0  # seconds that an order waits for applications, which are stopped or started at once here
PLACES = tuple(  # all steps in which a fault may happen
    f"{book.name} {step}"
    for book in BOOKS.values()
    for step in (
        *(each.name for each in book.steps),
        *(["undo"] if book.undo else []),
        *(["rehearse"] if book.rehearse else []),
    )
)
MM2_PROGRESS = "connect-offsets"
MOVE = "shop"


@dataclass(frozen=True)
class Doing:
    """A command. ``only``: steps that are named. ``breaks_off``: nobody does it again after its faults; of the usual steps, a
    seed takes the first few. ``meets``: the kind of its one fault, at one of its first writes; None: any, anywhere, or none."""

    book: str
    verb: Verb = "run"
    only: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    breaks_off: bool = False
    meets: Kind | None = None

    @property
    def runbook(self) -> Runbook[Any, Any]:
        return BOOKS[self.book]

    @property
    def order(self) -> Order:
        waits = {"wait": WAIT} if any(each.name == "wait" for each in self.runbook.options("run")) else {}
        order: Order = self.runbook.order(reason="chaos", by="ada", **{**waits, **self.options})
        return order

    @property
    def steps(self) -> Sequence[str]:
        """The steps that it takes, by name; an undo and a rehearsal are one."""
        flow: Any = None  # these orders say themselves what a flow's settings would
        return (self.only or self.runbook.usual(flow, self.order)) if self.verb == "run" else [self.verb]

    def place(self, step: int) -> str:
        """One of its steps as ``PLACES`` has it."""
        return f"{self.book} {self.steps[step]}"

    def __str__(self) -> str:
        said = [f"{key}={value}" for key, value in self.options.items()]
        return " ".join([self.book, self.verb, *said, *(["of it", *self.only] if self.only else [])])


@dataclass(frozen=True)
class Story:
    """``ends``: where every record must be in the end; ``is_exact``: no group reads a record twice; else none that was seen."""

    acts: tuple[Act | Doing, ...]
    ends: End
    is_exact: bool = True


def _failed_over(**options: Any) -> Doing:
    return Doing("failover", options={"way": "planned", **options})


def _migrated(*only: str, reverse: bool = False, breaks_off: bool = False) -> Doing:
    return Doing("migration", only=only, options={"move": MOVE, "reverse": reverse}, breaks_off=breaks_off)


_DISASTER = _failed_over(way="disaster")
_BEGIN: tuple[Act, ...] = ("write", "read", "window", "write", "read")
_SEEN: tuple[Act, ...] = ("write", "read", "window", "write")  # a window has seen where groups are
_AT_WORK: tuple[Act, ...] = ("write", "read")
_UNDO_MOVE = Doing("migration", "undo", options={"move": MOVE})
# Commands that are done again after their groups have read on, and then undone, while another driver does them once more.
_AGAIN = replace(_failed_over(), only=("drain", "freeze", "move_groups"))
_CUT_OVER = _migrated("mirror", "check_groups", "cut_over_consumers")
_RETURNED = Doing("failback", only=("return", "drain", "end_return", "move_groups"))


def _read_on(does: Doing, *between: Act) -> tuple[Act | Doing, ...]:
    undo = replace(does, verb="undo", only=(), meets="second_driver")
    undo = replace(undo, options={key: each for key, each in undo.options.items() if key == "move"})
    return replace(does, breaks_off=True), *between, "read", does, undo


STORIES: dict[str, Story] = {
    "failover": Story((*_BEGIN, _failed_over(), "over"), "west"),
    "failover, undone": Story((*_BEGIN, replace(_failed_over(), breaks_off=True), Doing("failover", "undo")), "both"),
    "disaster": Story((*_SEEN, "read", "lose", _DISASTER, "over"), "west", is_exact=False),
    "disaster, undone": Story((*_SEEN, "read", "lose", _DISASTER, "find", Doing("failover", "undo")), "both"),
    "failback": Story((*_BEGIN, _failed_over(), "over", *_AT_WORK, Doing("failback"), "back"), "both"),
    "failback, undone": Story(
        (
            *(*_BEGIN, _failed_over(), "over", *_AT_WORK, Doing("failback", breaks_off=True)),
            *(Doing("failback", "undo"), *_AT_WORK, Doing("failback"), "back"),
        ),
        "both",
    ),
    "failback after a disaster": Story(
        (
            *(*_SEEN, "lose", _DISASTER, "over", *_AT_WORK, "find", Doing("failback", only=("rescue",))),
            *(Doing("failback", options={"inexact": True}), "back"),
        ),
        "both",
        is_exact=False,
    ),
    "failover, read on, undone": Story((*_BEGIN, *_read_on(_AGAIN)), "both"),
    "failback, read on, undone": Story(
        (
            *(*_BEGIN, _failed_over(), "over", *_AT_WORK, *_AT_WORK, *_read_on(_RETURNED)),
            *(*_AT_WORK, Doing("failback"), "back"),
        ),
        "both",
    ),
    "migration": Story(
        (
            *(*_BEGIN, _migrated("mirror", "check_groups", "cut_over_consumers"), "consumers over", "write", "window"),
            *("read", _migrated("cut_over_producers"), "over", *_AT_WORK, _migrated("finish")),
        ),
        "west",
    ),
    "migration, undone": Story((*_BEGIN, _migrated(breaks_off=True), _UNDO_MOVE), "both"),
    "migration, undone over its reverse flow": Story(
        (*_BEGIN, _migrated(reverse=True), "over", *_AT_WORK, "window", *_AT_WORK, _UNDO_MOVE, "back"), "both"
    ),
    "migration, read on, undone": Story((*_BEGIN, *_read_on(_CUT_OVER, "write", "window")), "both"),
    "take-over and hand-back": Story(
        (
            *("write", "read", "copy", Doing("takeover"), "window", Doing("takeover", only=("history",)), "write"),
            *("read", "window", Doing("handback", options={"into": MM2_PROGRESS}), "write", "copy", Doing("takeover")),
            "read",
        ),
        "both",
    ),
    "rehearsal": Story(
        (*_BEGIN, "window", Doing("failover", "rehearse"), Doing("migration", "rehearse", options={"move": MOVE})),
        "both",
    ),
}


@dataclass(frozen=True)
class Hit:
    """A fault of the ``doing``-th act, which is a command: ``kind`` at the ``number``-th request of its step.

    ``every``: requests that read count too; ``after``: when it was answered. ``seconds``, ``side``: of what lasts;
    ``contrary``: a second driver undoes what is done here, or does again what is undone here.
    """

    doing: int
    step: int
    number: int
    kind: Kind
    after: bool = False
    every: bool = False
    side: Literal["east", "west", "both"] = "both"
    seconds: float = 0.0
    contrary: bool = False

    @property
    def is_contrary(self) -> bool:
        """Whether a second driver does the contrary."""
        return self.kind == "second_driver" and self.contrary

    def told(self, doing: Doing) -> str:
        """What it is, in words."""
        what = "request" if self.every else "write"
        when = "answered" if self.after else "on its way"
        long = f" for {self.seconds} s" if self.seconds else ""
        where = f" of {self.side}" if self.kind in ("refuse", "cut") else ""
        contrary = ", contrary" if self.is_contrary else ""
        return f"{self.kind}{contrary}{where}{long} in {doing.steps[self.step]}, {what} {self.number} {when}"


@dataclass(frozen=True)
class ProcedurePlan:
    """``elsewhere``: each process of a command is another deployment, whose ledger has seen nothing."""

    seed: int
    name: str
    acts: tuple[Act | Doing, ...]
    hits: tuple[Hit, ...]
    policy: str
    elsewhere: bool

    @property
    def story(self) -> Story:
        return STORIES[self.name]

    def contrary(self, number: int) -> Doing | None:
        """The command that undoes the act of this number, or that did what it undoes; None: the story has none, or the act is one
        step, which alone would not do again what was undone before it."""
        act = self.acts[number]
        if not isinstance(act, Doing) or (act.verb == "run" and len(act.steps) == 1 and not act.breaks_off):
            return None
        others = self.acts[number + 1 :] if act.verb == "run" else self.acts[number - 1 :: -1]
        found = next((each for each in others if isinstance(each, Doing)), None)
        return found if found is not None and {found.verb, act.verb} == {"run", "undo"} else None

    def hits_of(self, number: int) -> list[Hit]:
        """The faults of an act, one for each time that it is done."""
        return [each for each in self.hits if each.doing == number]

    def __str__(self) -> str:
        where = "each process with a ledger of its own" if self.elsewhere else "one ledger"
        lines = [f"seed {self.seed}: {self.name}, {self.policy} policy, {where}"]
        for number, act in enumerate(self.acts):
            lines.append(f"  {act}")
            lines += [f"    {each.told(act)}" for each in self.hits_of(number) if isinstance(act, Doing)]
        return "\n".join(lines)


def make_procedure_plan(seed: int) -> ProcedurePlan:
    """The plan of a seed: stories come in turn, all else by chance."""
    chance = random.Random(f"procedures {seed}")
    kinds = KINDS if seed >= ALL_FROM else KINDS[:-3]
    name = list(STORIES)[seed % len(STORIES)]
    acts = tuple(_broken_off(chance, each) for each in STORIES[name].acts)
    if chance.random() < 0.25:
        acts = tuple(part for each in acts for part in _by_steps(each))
    hits: list[Hit] = []
    for number, act in enumerate(acts):
        if isinstance(act, Doing):
            count = 1 if act.meets else chance.choice([0, 1, 1, 2, 2])
            hits += [_hit(chance, number, act, kinds) for _ in range(count)]
    return ProcedurePlan(
        seed=seed,
        name=name,
        acts=acts,
        hits=tuple(hits),
        policy=chance.choice(["default", "default", "identity"]),
        elsewhere=chance.random() < 0.5,
    )


def _broken_off(chance: random.Random, act: Act | Doing) -> Act | Doing:
    """The command with as many steps as are taken before somebody thinks better of it: not the last one of a failback, which
    ends it."""
    if isinstance(act, str) or not act.breaks_off or act.only:
        return act
    most = len(act.steps) - (act.book == "failback")
    return replace(act, only=tuple(act.steps[: chance.randint(1, most)]))


def _by_steps(act: Act | Doing) -> Iterator[Act | Doing]:
    """Yield its steps, each in a process of its own, as Airflow's tasks are: a run ends with the task that is not done again."""
    if isinstance(act, str) or act.verb != "run":
        yield act
        return
    for step in act.steps:
        yield replace(act, only=(step,), breaks_off=act.breaks_off and step == act.steps[-1])


def _hit(chance: random.Random, number: int, doing: Doing, kinds: Sequence[Kind]) -> Hit:
    every = chance.random() < 0.25 and not doing.meets
    at = 1 + (chance.randrange(6) if doing.meets else int(chance.expovariate(1 / 5)))
    kind = doing.meets or chance.choice(("kill_driver", *kinds))
    return Hit(
        doing=number,
        step=chance.randrange(len(doing.steps)),
        number=min(40, at * 4 if every or doing.verb == "rehearse" else at),
        kind=kind,
        after=chance.random() < 0.5,
        every=every or doing.verb == "rehearse",
        side=chance.choice(["east", "west", "both"]),
        seconds=round(chance.uniform(0.2, 2.5), 1) if kind in LASTING else 0.0,
        contrary=chance.random() < (0.8 if doing.meets else 0.5),
    )

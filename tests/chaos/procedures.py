"""One seed of procedures: its story, each command among its faults and again until it is done; then everything is compared."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

import psutil

from airmirror.flows.freezing import owners_now
from airmirror.slot.contract import transactional_id
from airmirror.slot.errors import SlotFenced
from airmirror.wire.owners import Owner
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Exchange, Proxy, pass_on, start_proxy
from chaos import clock
from chaos.drivers import Command, EndedCommand, Running, Watch, impatient
from chaos.estates import Estate, Positions, Side
from chaos.explanations import of_commands
from chaos.faults import Happened
from chaos.moves import fill_disk, hijack
from chaos.run import Report
from chaos.stories import Doing, Hit, Kind, ProcedurePlan
from support.forked import processes
from support.moves import forgetting, known_producers
from support.sides import Sides
from support.snapshots import snapshot
from support.topics import await_nodes, forget_clients, topics_of

ATTEMPTS = 10  # to do a command, after its faults
LONGEST = 90.0  # seconds of a command
RETRY_SECONDS = 0.3
FORGETS_SECONDS = 3.1  # in which a broker has looked for what it may forget
# Whether topics are frozen, and whether they return or have returned, when a command says that its last step is done.
OWNERS = {
    ("failover", "freeze"): (True, False),
    ("failover", "judge"): (True, False),
    ("failover", "move_groups"): (True, False),
    ("failover", "undo"): (False, False),
    ("failback", "return"): (True, True),
    ("failback", "drain"): (True, True),
    ("failback", "end_return"): (True, True),
    ("failback", "move_groups"): (True, True),
    ("failback", "unfreeze"): (False, False),
    ("failback", "undo"): (True, False),
    ("migration", "undo"): (False, False),
}


@dataclass
class ProcedureReport(Report):
    """``commands``: processes that carried one out, ``killed``: of these, or asked to end."""

    name: str = ""
    commands: int = 0
    places: dict[str, dict[str, int]] = field(default_factory=dict)  # faults by the step that they befell, and by kind

    def __str__(self) -> str:
        errors = ", ".join(f"{name} {count}" for name, count in sorted(self.errors.items())) or "none"
        phases = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in self.phases.items())
        return (
            f"seed {self.seed} {'FAILED' if self.failures else 'passed'}: {self.name}, {self.records} records, {self.commands} "
            f"commands ({self.killed} killed), {len(self.happened)} faults ({len(self.missed)} found nothing), "
            f"{self.seconds:.0f} s ({phases}); errors: {errors}"
        )


@dataclass
class Telling:
    """A story that is told: its estate, and what became of its commands."""

    plan: ProcedurePlan
    estate: Estate
    proxies: Mapping[Side, Proxy]
    report: ProcedureReport
    met: set[Kind] = field(default_factory=set)  # kinds of faults that the present command has met, in any process
    _stood: dict[str, Positions] = field(default_factory=dict)  # before a procedure, by its name, until it is undone
    _said: tuple[Doing, Positions] | None = None  # what a second driver has done, and where groups stand by that
    _is_source_lost: bool = False

    def tell(self) -> None:
        """All acts, then the end of the story."""
        acts: dict[str, Callable[[], object]] = {
            "write": self.estate.write,
            "read": self.estate.read,
            "window": self.estate.window,
            "copy": self.estate.copy,
            "lose": lambda: self._lose(True),
            "find": lambda: self._lose(False),
            "consumers over": lambda: self.estate.move("west", producers=False),
            "over": self._over,
            "back": lambda: self.estate.move("east"),
        }
        for number, act in enumerate(self.plan.acts):
            with self.report.phase("commands" if isinstance(act, Doing) else "applications"):
                self._carry_out(number, act) if isinstance(act, Doing) else acts[act]()
        self._lose(False)
        with self.report.phase("comparing"):
            self.report.records = self.estate.finish()

    def _over(self) -> None:
        if not self.plan.story.is_exact:
            self.estate.count_lost()
        self.estate.move("west")

    def _lose(self, lost: bool) -> None:
        """The source's network is down, for commands and windows."""
        if lost:
            self.estate.count_unseen()
        self._is_source_lost = lost
        self._heal()

    def _heal(self) -> None:
        for side, proxy in self.proxies.items():
            proxy.on_request = _refuse if side == "east" and self._is_source_lost else pass_on
            proxy.on_answer = pass_on
        if self._is_source_lost:
            self.proxies["east"].cut()

    def _carry_out(self, number: int, doing: Doing) -> None:
        """The command among its faults, then until it is done. One that breaks off is undone next, however far it has come."""
        if doing.verb == "run" and doing.book not in self._stood:
            self._stood[doing.book] = self.estate.positions()
        before = self._seen() if doing.verb == "rehearse" else []
        self.met = set()
        hits = self.plan.hits_of(number)
        for hit in hits:
            contrary = self.plan.contrary(number) if hit.contrary else None
            self._attempt(doing, hit, contrary or doing)
        gives_up = doing.breaks_off and bool(hits)
        for left in range(0 if gives_up else ATTEMPTS, 0, -1):
            ended = self._attempt(doing)
            if ended is not None and ended.is_done:
                break
            assert left > 1, f"{doing} is not done after {ATTEMPTS} times: {ended}"
            time.sleep(RETRY_SECONDS)
        if doing.verb == "undo":
            self._check_undone(doing)
        if before and "window" not in self.met:
            assert self._seen() == before, f"{doing} has changed something"

    def _seen(self) -> list[dict[str, object]]:
        names = *self.estate.groups, *self.estate.groups.values(), "mm2", "airmirror"
        return [snapshot(self.estate.broker(side), *names) for side in self.proxies]

    def _check_undone(self, doing: Doing) -> None:
        """Groups stand where they stood on the cluster to which they were moved; not after an undo over a reverse flow."""
        side: Side = "east" if doing.book == "failback" else "west"
        stood, now = self._stood.pop(doing.book), self.estate.positions()
        for group in () if "reverse" in self.plan.name else self.estate.groups.values():
            assert now[group, side] == stood[group, side], (
                f"{group} stood at {stood[group, side]} on {side}, and is at {now[group, side]} after {doing}"
            )

    def _attempt(
        self, doing: Doing, hit: Hit | None = None, second: Doing | None = None, *, elsewhere: bool = False
    ) -> EndedCommand | None:
        """Do it once; how it ended, None: it was killed. ``second``: what another driver does meanwhile; ``elsewhere``: by
        another deployment, whatever the plan says."""
        running, self._said = self._start(doing, elsewhere=elsewhere), None
        if hit is not None:
            self._befall(running, doing, hit, second or doing)
        running.process.join(LONGEST)
        if running.process.exitcode is None:
            running.process.kill()
            running.process.join()
            raise AssertionError(f"{doing} hangs")
        self._heal()
        ended = running.ended
        if ended is None:
            self.report.killed += 1
        else:
            self._judge(doing, ended)
            if ended.is_done:
                self._check_owners(doing, *(self._said or ())[:1])
            elif isinstance(ended.error, SlotFenced) and self._said is not None:
                self._check_said(doing, *self._said)
        return ended

    def _check_said(self, doing: Doing, second: Doing, stood: Positions) -> None:
        """Whoever slept, and has lost his lease to another driver meanwhile, has changed nothing of what that one has done."""
        self._check_owners(second)
        now = self.estate.positions()
        assert now == stood, f"{doing} was fenced by {second}, and has moved groups since: from {stood} to {now}"

    def _check_owners(self, *done: Doing) -> None:
        """What a command says when it is done is so: who owns what it names. Of two of them, either may have been the last."""
        owners, moves = owners_now(self.estate.both.forward), self.estate.moves
        found = (owners.owner(moves) is not Owner.SOURCE, bool(owners.returning()))
        wanted = [_owners_after(each) for each in done]
        assert None in wanted or found in wanted, f"{done} is done: frozen and returning are {found}, not {wanted}"

    def _start(self, doing: Doing, *, elsewhere: bool) -> Running:
        self.report.commands += 1
        ended = self.estate.directory / f"{uuid.uuid4().hex}.ended"
        command = Command(doing, self.estate.config, self.estate.ledger(elsewhere=elsewhere), ended)
        clock.make(command.clock)
        return Running.start(command)

    def _judge(self, doing: Doing, ended: EndedCommand) -> None:
        """A fault may only show as an error that passes, or that it explains; without one there is none."""
        if ended.crash:
            self.report.failures.append(f"{doing} crashed:\n{ended.crash}")
        error = ended.error
        if error is None:
            return
        name = type(error).__name__
        self.report.errors[name] = self.report.errors.get(name, 0) + 1
        if not self.met or not (error.transient or self.met.intersection(of_commands(name))):
            self.report.failures.append(f"{doing}, after {sorted(self.met) or 'no fault'}: {name}: {error}")

    def _befall(self, running: Running, doing: Doing, hit: Hit, second: Doing) -> None:
        """Wait for the place, and do the fault there."""
        reached, sends = processes.Pipe(duplex=False)
        watch = Watch(hit, running.step, sends)
        for side, proxy in self.proxies.items():
            if side == "west" or not self._is_source_lost:
                watch.on(side, proxy)
        found = wait([reached, running.process.sentinel], LONGEST)
        told = f"{doing}: {hit.told(doing)}"
        if reached not in found:
            watch.let(loses=False)
            self.report.missed.append(Happened(hit.kind, told))
            return
        side, step = reached.recv()
        place = doing.place(step)
        fault = Happened(hit.kind, f"{told}, at {side} in {place}")
        self.met.add(hit.kind)
        happened = True
        try:
            happened = self._do(running, hit, side, watch, second)
        finally:
            watch.let(loses=False)
            (self.report.happened if happened else self.report.missed).append(fault)
        if happened:
            its = self.report.places.setdefault(place, {})
            its[hit.kind] = its.get(hit.kind, 0) + 1

    def _do(self, running: Running, hit: Hit, side: Side, watch: Watch, second: Doing) -> bool:
        """Do the fault while the request is held; whether it has befallen anything."""
        if hit.kind == "kill_driver":
            running.process.kill()
            running.process.join()
            watch.let(loses=True)
        elif hit.kind == "end_driver":
            running.process.terminate()
        elif hit.kind == "lose":
            watch.let(loses=True)
        elif hit.kind in ("cut", "refuse"):
            for name in self.proxies if hit.side == "both" else (hit.side,):
                if hit.kind == "refuse":
                    self.proxies[name].on_request = _refuse
                self.proxies[name].cut()
            watch.let(loses=hit.side in (side, "both"))
            time.sleep(hit.seconds)
            self._heal()
        elif hit.kind == "kill_node":
            broker = self.estate.broker(side)
            broker.kill()
            watch.let(loses=True)
            time.sleep(hit.seconds)
            mend(self.estate.sides)
        elif hit.kind == "stop_node":
            broker = self.estate.broker(side)
            broker.pause()
            watch.let(loses=False)
            time.sleep(hit.seconds)
            broker.resume()
        elif hit.kind == "fill_disk":
            fill_disk(self.estate.broker(side), hit.seconds, self._unwritten, lambda: watch.let(loses=False))
            mend(self.estate.sides)
            forget_clients()  # the node was started again by whoever filled its disk
        elif hit.kind == "forget_producers":
            return self._forget(self.estate.broker(side), hit.seconds, watch)
        elif hit.kind == "jump_clock":
            clock.jump(running.command.clock, hit.seconds, lambda: watch.let(loses=False))
        elif hit.kind == "hijack":
            sides, both = self.estate.sides, self.estate.both
            its = (sides.west, both.forward.flow), (sides.east, both.reverse.flow)
            taken = [hijack(broker, transactional_id(flow, 0)) for broker, flow in its]
            return all(taken)
        elif hit.kind == "window":
            self.estate.window()
        else:
            self._do_second(running, watch, second)
        return True

    def _forget(self, broker: Broker, seconds: float, watch: Watch) -> bool:
        """Let the broker forget producers; whether it has forgotten one, in any partition."""
        topics = topics_of(broker)
        known = known_producers(broker, topics)
        with forgetting(broker):
            time.sleep(FORGETS_SECONDS + seconds)
            left = known_producers(broker, topics)
            watch.let(loses=False)
        return any(known.get(each, set()) - its for each, its in left.items())

    def _unwritten(self) -> Exception:
        return AssertionError("a node whose disk is full has written nothing")

    def _do_second(self, running: Running, watch: Watch, second: Doing) -> None:
        """The driver sleeps in the midst of its request, while another one does all of it, or undoes it; then it wakes."""
        process = psutil.Process(running.process.pid)
        process.suspend()
        ended: EndedCommand | None = None
        try:
            for _ in range(ATTEMPTS):
                ended = self._attempt(second, elsewhere=True)  # the one that sleeps may have locked its ledger
                if ended is not None and not (ended.error and ended.error.transient):
                    break
            if ended is not None and ended.is_done:
                self._said = second, self.estate.positions()
        finally:
            watch.let(loses=False)
            process.resume()


def _owners_after(doing: Doing) -> tuple[bool, bool] | None:
    """Whether topics are frozen, and whether they return, once a command is done; None: it does not say so."""
    if doing.steps[-1] == "cut_over_producers":
        return True, bool(doing.options["reverse"])
    return OWNERS.get((doing.book, doing.steps[-1]))


def _refuse(_: Exchange, frame: bytes) -> None:
    return None


def run_procedure(
    plan: ProcedurePlan, sides: Sides, directory: Path, tell: Callable[[str], None] = print
) -> ProcedureReport:
    """Run one seed; its failures are in the report. The clusters are left well, and empty."""
    report, begun = ProcedureReport(plan.seed, name=plan.name), time.monotonic()
    directory.mkdir(parents=True)
    with ExitStack() as stack:
        proxies: dict[Side, Proxy] = {
            "east": stack.enter_context(start_proxy(sides.east)),
            "west": stack.enter_context(start_proxy(sides.west)),
        }
        stack.enter_context(impatient())
        try:
            sides.empty()
            Telling(plan, Estate(plan, sides, proxies, directory), proxies, report).tell()
        except Exception as error:
            report.failures.append(f"{type(error).__name__}: {error}")
        finally:
            mend(sides)
    report.seconds = time.monotonic() - begun
    tell(str(report))
    for failure in report.failures:
        tell(f"  {failure}")
    for line in report.happened if report.failures else ():
        tell(f"  happened: {line}")
    return report


def mend(sides: Sides) -> None:
    """Both nodes run."""
    for broker in (sides.east, sides.west):
        if broker.process.running:
            broker.resume()
        else:
            broker.restart()
            forget_clients()
        await_nodes(broker, 1)

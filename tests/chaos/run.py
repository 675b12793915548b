"""One seed: clusters that are well, a flow of its own, producers, windows and faults; then everything is healed and checked."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, catch_up_ledger, open_flow
from airmirror.naming import mapping_topic, progress_topic
from airmirror.slot.contract import transactional_id
from airmirror.windows.fence import end_window
from chaos import clock
from chaos.checks import check
from chaos.clusters import FRAGILE_NODE, Clusters
from chaos.explanations import unexplained
from chaos.faults import Faults, Happened
from chaos.ledgers import LedgerFaults
from chaos.mirrormaker import leave_behind
from chaos.moves import Moves
from chaos.plan import Plan
from chaos.producers import BULK, KINDS, Writer, Written
from chaos.windows import CLOCK, LONGEST, Ended, Task, alive, ended, standing_still, start_window
from support.topics import Cluster, bootstrap, create_topic, delete_topic, place_on_node

FINAL_SECONDS = 180.0
FINAL = frozenset({"SlotFenced", "AccessLost", "TopicNotFound"})  # which still need a fault that explains them
FOLLOW_MS = 8_000  # of every other window, while faults happen
RETRY_SECONDS = 0.2  # after a window that was killed or had errors
SLOT_SECONDS = 75.0  # a slot whose driver was killed ends by itself


@dataclass
class Report:
    """What became of a seed. ``failures`` is empty where it passed; ``errors`` counts the windows' errors by name, and ``said``
    has what the last of each name said."""

    seed: int
    records: int = 0
    windows: int = 0
    killed: int = 0
    following: int = 0  # of the windows, those that were to follow the log
    followed: int = 0  # records that such windows copied after their plans
    seconds: float = 0.0
    errors: dict[str, int] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    happened: list[Happened] = field(default_factory=list)
    missed: list[Happened] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.monotonic() - begun

    def __str__(self) -> str:
        errors = ", ".join(f"{name} {count}" for name, count in sorted(self.errors.items())) or "none"
        phases = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in self.phases.items())
        state = "FAILED" if self.failures else "passed"
        return (
            f"seed {self.seed} {state}: {self.records} records equal, {self.windows} windows ({self.killed} killed; "
            f"{self.following} followed the log and copied {self.followed} records so), "
            f"{len(self.happened)} faults ({len(self.missed)} found nothing), {self.seconds:.0f} s ({phases}); errors: {errors}"
        )


@dataclass
class Seed:
    """A seed's flow, and its windows one after the other."""

    plan: Plan
    clusters: Clusters
    directory: Path
    report: Report

    def __post_init__(self) -> None:
        three, one = self.clusters.three, self.clusters.single(self.plan.first_protocol).broker
        self.source: Cluster = three if self.plan.three == "source" else one
        self.target: Cluster = one if self.plan.three == "source" else three
        self.alias = f"c{self.plan.seed}-{uuid.uuid4().hex[:6]}"
        topics = [
            create_topic(self.source, f"{name}-{self.alias}", count, None, self._replicas(self.source))
            for name, count in (("orders", 3), ("events", 1))
        ]
        self.topics = {topic: f"{self.alias}.{topic}" for topic in topics}
        self.flow = f"{self.alias}->west"
        self.config = self.directory / "mirror.properties"
        self.config.write_text("\n".join(f"{key} = {value}" for key, value in self._properties().items()))
        self.ledger_file = self.directory / "ledger.db"
        self.ledger = f"sqlite:///{self.ledger_file}"
        if self.plan.fragile:
            place_on_node(self.clusters.three, self.topics[topics[0]], 3, self.clusters.three.brokers[FRAGILE_NODE])
        self.begins = leave_behind(self) if self.plan.taken_over else {}
        self.before = sum(self.begins.values())  # records that no mapping will tell of

    def open(self) -> AbstractContextManager[Opened]:
        return open_flow(self.config, self.flow, self.ledger)

    def delete_mappings(self) -> str:
        """Delete the mapping topic while no window is at work; MirrorMaker 2's progress says where to resume (a take-over)."""
        if any(alive(self.directory / "processes", role) for role in ("window", "slot")):
            return ""
        with self.open() as opened:
            try:
                catch_up_ledger(opened)
            except AirmirrorError:
                return ""
            state, ledger = opened.ledger.state(), opened.ledger
            if not state.mappings or any(
                state.progress.get(key, -1) + 1 != state.positions[key] for key in state.mappings
            ):
                return ""
            before = sum(record.copied for key in state.mappings for record in ledger.mappings(*key))
            delete_topic(self.target, mapping_topic(self.alias))
        self.begins |= {key: state.positions[key] for key in state.mappings}
        self.before += before
        return f"mappings of {len(state.mappings)} partitions deleted, with {before} records"

    def _replicas(self, cluster: Cluster) -> int:
        return len(self.clusters.three.brokers) if cluster is self.clusters.three else 1

    def _properties(self) -> dict[str, str]:
        replicas = str(self._replicas(self.target))
        return {
            "clusters": f"{self.alias}, west",
            f"{self.alias}.bootstrap.servers": self._address(self.source),
            "west.bootstrap.servers": self._address(self.target),
            f"{self.flow}.enabled": "true",
            f"{self.flow}.topics": ", ".join(self.topics),
            "replication.factor": replicas,
            "offset.storage.replication.factor": replicas,
            "offset.storage.partitions": "3",
            "window.slot.bytes": "1",  # as many slots as the plan says
        } | {f"{self.flow}.{key}": value for key, value in self.plan.settings.items()}

    def _address(self, cluster: Cluster) -> str:
        """Windows reach the single node through its proxy."""
        if cluster is self.clusters.three:
            return bootstrap(cluster)
        return self.clusters.single(self.plan.first_protocol).proxy.bootstrap

    def moves(self, written: Sequence[str]) -> Moves:
        """Faults of the cluster of three nodes, where the flow's topics on it are, and of what the target keeps of producers."""
        topics = written if self.plan.three == "target" else list(self.topics)
        with self.open() as opened:
            ids = [transactional_id(opened.flow, number) for number in range(self.plan.slots)]
        return Moves(
            plan=self.plan,
            clusters=self.clusters,
            topics=topics,
            ids=ids,
            copies=list(self.topics.values()),
            target=self.target,
        )

    def window(self, follows: bool = False) -> Ended | None:
        """Run a window to its end, however it ends; None where it was killed. ``follows``: every other time."""
        follows = follows and self.report.windows % 2 == 0
        self.report.windows += 1
        self.report.following += follows
        task = Task(
            config=self.config,
            flow=self.flow,
            ledger=self.ledger,
            directory=self.directory / "processes",
            window=f"w{uuid.uuid4().hex[:6]}",
            slots=self.plan.slots,
            spark_url=self.clusters.spark_url() if self.plan.spark else None,
            tuning=self.plan.tuning,
            follow_ms=FOLLOW_MS if follows else 0,
        )
        process = start_window(task)
        process.join(LONGEST)
        if process.exitcode is None:
            self.report.failures.append(f"window {task.window} hangs:\n{standing_still(task)}")
            process.kill()
            process.join()
        outcome = ended(task)
        if outcome is None:
            self.report.killed += 1
            if self.plan.ends_dead_windows:
                self._end_dead(task)
        else:
            self.report.followed += outcome.followed
            self._judge(outcome)
        return outcome

    def _end_dead(self, task: Task) -> None:
        """As Airflow's next attempt does."""
        try:
            with self.open() as opened:
                end_window(opened.flow, opened.ledger, task.window)
        except AirmirrorError as error:
            self._judge(Ended(window=task.window, verified=False, rows=0, copied=0, errors=(error,), crash=""))

    def _judge(self, outcome: Ended) -> None:
        """Faults may only show as errors that pass, save those that say that access was denied or another window took over."""
        if outcome.crash:
            self.report.failures.append(f"window {outcome.window} crashed:\n{outcome.crash}")
        for error in outcome.errors:
            name = type(error).__name__
            self.report.errors[name] = self.report.errors.get(name, 0) + 1
            self.report.said[name] = f"window {self.report.windows}: {error}"
            if not error.transient and name not in FINAL:
                self.report.failures.append(f"window {outcome.window}: final error {name}: {error}")

    def finish(self) -> None:
        """Windows until nothing is left, with nothing failing any more: each of them copies, or not much time is left."""
        until = time.monotonic() + FINAL_SECONDS
        while True:
            outcome = self.window()
            if outcome is not None and outcome.verified and not outcome.rows:
                return
            if outcome is not None and outcome.copied:
                until = time.monotonic() + FINAL_SECONDS
            if time.monotonic() > until:
                raise AssertionError(f"nothing was copied for {FINAL_SECONDS:g} s after everything was well: {outcome}")

    def clear(self) -> None:
        """Leave the clusters to the next seed as they were."""
        for topic, remote in self.topics.items():
            delete_topic(self.source, topic)
            delete_topic(self.target, remote)
        for internal in (mapping_topic(self.alias), progress_topic(self.alias)):
            delete_topic(self.target, internal)

    def await_slots(self) -> None:
        """Slots that outlived their driver end by themselves."""
        until = time.monotonic() + SLOT_SECONDS
        while left := alive(self.directory / "processes", "slot") + alive(self.directory / "processes", "window"):
            if time.monotonic() > until:
                for process in left:
                    process.kill()
                raise AssertionError(f"still there after {SLOT_SECONDS:g} s: {left}")
            time.sleep(0.1)


def run_seed(plan: Plan, clusters: Clusters, directory: Path, tell: Callable[[str], None] = print) -> Report:
    """Run one seed; its failures are in the report. The clusters are left well, unless healing them is what failed."""
    report = Report(plan.seed)
    directory.mkdir(parents=True)
    clusters.heal()
    if plan.spark:
        clusters.spark_url()
    seed = Seed(plan, clusters, directory, report)
    written = [mapping_topic(seed.alias), progress_topic(seed.alias)]
    faults = Faults(
        plan=plan,
        clusters=clusters,
        directory=directory / "processes",
        written=[*seed.topics.values(), *written],
        second_window=seed.window,
        ledger=LedgerFaults(seed.ledger_file, seed.open),
        moves=seed.moves([*seed.topics.values(), *written]),
    )
    faults.directory.mkdir()
    clock.make(faults.directory / CLOCK)
    partitions = [(topic, number) for topic, count in zip(seed.topics, (3, 1), strict=True) for number in range(count)]
    writers = [
        Writer(Written(f"{kind}-{seed.alias}", kind), seed.source, partitions, f"{plan.seed} {kind}", plan.pause)
        for kind in (KINDS if not plan.bulk else (*KINDS, BULK))
    ]
    numbers: list[Written] = []
    begun = time.monotonic()
    try:
        try:
            with report.phase("windows among faults"):
                faults.begin()
                # A fault may wait for what a window makes, which takes long on a busy machine.
                while time.monotonic() < begun + plan.seconds or not faults.is_over:
                    faults.between_windows(seed.delete_mappings)
                    outcome = seed.window(follows=True)
                    if outcome is None or outcome.errors:
                        time.sleep(RETRY_SECONDS)
        finally:
            with report.phase("healing"):
                faults.end()
                report.happened += faults.happened
                report.missed += faults.missed
                report.failures += faults.problems
                clusters.heal()
                numbers += [writer.stop() for writer in writers]
        with report.phase("the rest"):
            seed.finish()
            seed.await_slots()
            seed.finish()
        explained = {fault.kind for fault in report.happened}
        if left := unexplained(report.errors, explained):
            said = "; ".join(f"{name} {report.errors[name]} times, the last in {report.said[name]}" for name in left)
            report.failures.append(f"errors that none of {sorted(explained)} explains: {said}")
        with report.phase("checks"), seed.open() as opened:
            report.records = check(
                opened,
                seed.source,
                seed.target,
                seed.topics,
                numbers,
                begins=seed.begins,
                before=seed.before,
                exported="delete_progress" not in explained,
            )
        seed.clear()
    except Exception as error:
        report.failures.append(f"{type(error).__name__}: {error}")
    report.seconds = time.monotonic() - begun
    tell(str(report))
    for failure in report.failures:
        tell(f"  {failure}")
    if report.failures:
        for line in report.happened:
            tell(f"  happened: {line}")
    return report

"""Doing the faults of a plan: each in a thread of its own, at its time, and undone after it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AclOperation, ResourceType
from tenacity import RetryError, Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from airmirror_local.brokers import Broker
from airmirror_local.proxy import Exchange, Loss, pass_on
from chaos import clock
from chaos.clusters import FRAGILE_NODE, Clusters, Single
from chaos.ledgers import LedgerFaults
from chaos.moves import Missed, Moves, NothingToMove, fill_disk
from chaos.plan import APART, BETWEEN, IDS, MOVES, NODES, STATE, UPGRADES, Fault, Plan
from chaos.windows import CLOCK, alive
from chaos.withheld import Withheld, of_data
from support.acls import denied
from support.topics import Cluster, delete_topic, set_config

WAIT_SECONDS = 15.0  # for a process to befall
DELAY = 0.05  # seconds a frame
TOPIC_SECONDS = 120.0  # until the first window has made the topics that a fault befalls


@dataclass(frozen=True)
class Happened:
    """What became of a planned fault."""

    kind: str
    what: str

    def __str__(self) -> str:
        return self.what


Turn = Future[str]  # of a fault that waits for a moment between two windows


@dataclass
class Faults:
    """The faults of a plan under way; ``end`` waits until all are undone.

    ``happened`` tells what was done, in order, ``missed`` which faults found nothing to befall.
    """

    plan: Plan
    clusters: Clusters
    directory: Path  # where the windows' processes tell of themselves
    written: list[str]  # topics on the target
    second_window: Callable[[], object]
    ledger: LedgerFaults
    moves: Moves
    happened: list[Happened] = field(default_factory=list)
    missed: list[Happened] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _between: queue.SimpleQueue[Turn] = field(default_factory=queue.SimpleQueue)

    def begin(self) -> None:
        begun = time.monotonic()
        for faults in [self.plan.faults] if self.plan.in_turn else [(fault,) for fault in self.plan.faults]:
            thread = threading.Thread(target=self._in_turn, args=(faults, begun), name=faults[0].kind, daemon=True)
            self._threads.append(thread)
            thread.start()

    @property
    def is_over(self) -> bool:
        """Whether every fault has happened, or found nothing to befall."""
        return not any(thread.is_alive() for thread in self._threads)

    def between_windows(self, delete_mappings: Callable[[], str]) -> None:
        """Do what waits for this moment; ``delete_mappings`` tells what it has done, or nothing: it is tried at the next one."""
        if not self._between.empty() and (what := delete_mappings()):
            self._between.get().set_result(what)

    def end(self) -> None:
        for thread in self._threads:
            thread.join()

    def _in_turn(self, faults: Sequence[Fault], begun: float) -> None:
        for fault in faults:
            self._guarded(fault, begun)

    def _guarded(self, fault: Fault, begun: float) -> None:
        time.sleep(max(0.0, begun + fault.at - time.monotonic()))  # the plan's time
        try:
            what = self._do(fault)
        except Missed as missed:
            self.missed.append(Happened(fault.kind, f"{fault}: {missed}"))
        except BaseException as error:
            self.problems.append(f"{fault}: {type(error).__name__}: {error}")
        else:
            self.happened.append(Happened(fault.kind, f"{fault}: {what} ({time.monotonic() - begun:.1f} s)"))

    def _do(self, fault: Fault) -> str:
        if fault.kind in NODES:
            return self._befall_node(fault)
        if fault.kind in ("kill_slot", "kill_window"):
            return self._befall_process(fault.kind.partition("_")[2], lambda process: process.kill())
        if fault.kind in ("stop_slot", "stop_window"):
            return self._befall_process(fault.kind.partition("_")[2], lambda process: _stopped(process, fault.seconds))
        if fault.kind == "second_window":
            return str(self.second_window())
        if fault.kind == "kill_worker":
            return self._kill_worker()
        if fault.kind == "kill_spark":
            with self.clusters.locks["spark"]:
                self.clusters.restart_spark()
            return "killed and started again"
        if fault.kind == "deny_writes":
            return self._deny(fault)
        if fault.kind == "starve":
            return self._starve(fault)
        if fault.kind == "unlead":
            return self._unlead(fault)
        if fault.kind == "delete_progress":
            return self._delete_progress()
        if fault.kind in MOVES | APART | IDS | UPGRADES:
            return self._move(fault)
        if fault.kind == "fill_disk":
            return self._fill_disk(fault)
        if fault.kind == "jump_clock":
            return clock.jump(self.directory / CLOCK, fault.seconds)
        if fault.kind in BETWEEN:
            return self._between_two_windows()
        if fault.kind in STATE:
            return self.ledger.befall(fault)
        return _befall_connections(self._single, fault, self._patience)

    def _between_two_windows(self) -> str:
        turn = Turn()
        self._between.put(turn)
        try:
            return turn.result(TOPIC_SECONDS)
        except TimeoutError:
            raise Missed("windows were at work, or nothing was to be deleted") from None

    @property
    def _patience(self) -> float:
        """Seconds for something to befall: a fault that must happen may wait for it."""
        return TOPIC_SECONDS if self.plan.in_turn else WAIT_SECONDS

    @property
    def _single(self) -> Single:
        return self.clusters.single(self.plan.first_protocol)

    def _move(self, fault: Fault) -> str:
        """Do something to topics that the first window makes."""
        waiting = Retrying(
            retry=retry_if_exception_type(NothingToMove), wait=wait_fixed(0.2), stop=stop_after_delay(TOPIC_SECONDS)
        )
        try:
            return str(waiting(self.moves.befall, fault))
        except RetryError:
            raise Missed("its topics are not made") from None

    def _fill_disk(self, fault: Fault) -> str:
        node, lock = self._node(fault)
        with lock:
            return fill_disk(node, fault.seconds, lambda: Missed("it wrote nothing"))

    def _node(self, fault: Fault) -> tuple[Broker, threading.Lock]:
        three = fault.side == self.plan.three
        node: Broker = self.clusters.three.brokers[fault.node] if three else self._single.broker
        return node, self.clusters.locks["three" if three else "one"]

    def _befall_node(self, fault: Fault) -> str:
        node, lock = self._node(fault)
        with lock:
            if fault.kind == "stop_node":
                node.pause()
                time.sleep(fault.seconds)
                node.resume()
                return "stopped and resumed"
            with ExitStack() as stack:
                if fault.kind == "refuse_writes":
                    self._demand_all_replicas(stack)
                node.stop() if fault.kind == "restart_node" else node.kill()
                time.sleep(fault.seconds)
                node.restart()
        return "started again"

    def _demand_all_replicas(self, stack: ExitStack) -> None:
        """With a node down, topics that want three in-sync replicas take nothing."""
        for topic in self.written:
            try:
                set_config(self.clusters.three, topic, "min.insync.replicas", "3")
            except KafkaException:  # not made yet
                continue
            stack.callback(
                _patiently(lambda topic=topic: set_config(self.clusters.three, topic, "min.insync.replicas", None))
            )  # type: ignore[misc]

    def _deny(self, fault: Fault) -> str:
        with ExitStack() as stack:
            with self.clusters.locks["one"]:
                stack.enter_context(
                    denied(self._single.broker, ResourceType.TOPIC, self.written[0], AclOperation.WRITE)
                )
            time.sleep(fault.seconds)
            with self.clusters.locks["one"]:
                stack.close()
        return "denied and allowed again"

    def _starve(self, fault: Fault) -> str:
        """One remote topic wants all three replicas in sync, and a node dies: it alone takes nothing."""
        three, topic = self.clusters.three, self.written[1]  # the first one may be fragile
        _to_topic(topic, lambda: set_config(three, topic, "min.insync.replicas", "3"))
        node = three.brokers[fault.node]
        with self.clusters.locks["three"]:
            node.kill()
            time.sleep(fault.seconds)
            node.restart()
        _patiently(lambda: set_config(three, topic, "min.insync.replicas", None))()
        return f"{topic} took nothing for {fault.seconds} s"

    def _unlead(self, fault: Fault) -> str:
        """The node that alone has a remote topic dies: nobody leads its partitions, all others continue."""
        if not self.plan.fragile:
            raise Missed("every topic has three replicas")
        node = self.clusters.three.brokers[FRAGILE_NODE]
        with self.clusters.locks["three"]:
            node.kill()
            time.sleep(fault.seconds)
            node.restart()
        return "without a leader, and back"

    def _delete_progress(self) -> str:
        topic = self.written[-1]
        _to_topic(topic, lambda: delete_topic(self._target(), topic))
        return f"{topic} deleted"

    def _target(self) -> Cluster:
        return self.clusters.three if self.plan.three == "target" else self._single.broker

    def _befall_process(self, role: str, do: Callable[[psutil.Process], object]) -> str:
        waiting = Retrying(
            retry=retry_if_result(lambda found: not found), wait=wait_fixed(0.02), stop=stop_after_delay(self._patience)
        )
        try:
            process = waiting(lambda: alive(self.directory, role))[0]
            do(process)
        except (RetryError, psutil.NoSuchProcess):
            raise Missed(f"no {role} was there") from None
        return f"process {process.pid}"

    def _kill_worker(self) -> str:
        """A Python worker of Spark, in which a slot runs; its parent is the daemon that forks them."""
        waiting = Retrying(
            retry=retry_if_result(lambda found: not found), wait=wait_fixed(0.02), stop=stop_after_delay(self._patience)
        )
        try:
            worker = waiting(self._workers)[0]
            worker.kill()
        except (RetryError, psutil.NoSuchProcess):
            raise Missed("no worker was there") from None
        return f"process {worker.pid}"

    def _workers(self) -> list[psutil.Process]:
        server = self.clusters.spark
        if server is None:
            return []
        try:
            family = psutil.Process(server.process.pid).children(recursive=True)
            daemons = {process.pid for process in family if any("pyspark.daemon" in word for word in process.cmdline())}
            return [process for process in family if process.pid in daemons and process.ppid() in daemons]
        except psutil.NoSuchProcess:
            return []


def _stopped(process: psutil.Process, seconds: float) -> None:
    process.suspend()
    time.sleep(seconds)
    process.resume()


def _befall_connections(single: Single, fault: Fault, patience: float) -> str:
    proxy = single.proxy
    if fault.kind == "cut":
        proxy.cut()
        return "cut"
    if fault.kind == "delay":
        proxy.on_answer = _delay
        time.sleep(fault.seconds)
        if proxy.on_answer is _delay:
            proxy.on_answer = pass_on
        return "delayed"
    if fault.kind == "withhold":
        proxy.on_answer = withheld = Withheld(of_data(single.broker))
        if withheld.begun.wait(patience):
            time.sleep(fault.seconds)
        if proxy.on_answer is withheld:
            proxy.on_answer = pass_on
        if not withheld.happened:
            raise Missed("no records were asked for")
        return f"{withheld.happened} answers without records"
    loss = Loss(fault.api_key, proxy.requests[fault.api_key] + fault.number)
    if fault.kind == "lose_request":
        proxy.on_request = loss
    else:
        proxy.on_answer = loss
    if not loss.happened.wait(patience):
        raise Missed("not lost in time")
    return "lost"


def _delay(_: Exchange, frame: bytes) -> bytes:
    time.sleep(DELAY)
    return frame


def _to_topic(topic: str, do: Callable[[], None]) -> None:
    """Do something to a topic that the first window makes."""
    try:
        _patiently(do)()
    except KafkaException as error:
        raise Missed(f"{topic} is not made, or nobody answers: {error}") from None


def _patiently(do: Callable[[], None]) -> Callable[[], None]:
    retrying = Retrying(stop=stop_after_delay(TOPIC_SECONDS), wait=wait_fixed(0.2), reraise=True)
    return lambda: retrying(do)

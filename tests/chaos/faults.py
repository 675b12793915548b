"""Doing the faults of a plan: each in a thread of its own, at its time, and undone after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AclOperation, ResourceType
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from airmirror_local.brokers import Broker
from airmirror_local.proxy import Exchange, Loss, Proxy, pass_on
from chaos.clusters import Clusters
from chaos.plan import NODES, Fault, Plan
from chaos.windows import alive
from support.acls import denied
from support.topics import set_config

WAIT_SECONDS = 4.0  # for a process to befall
DELAY = 0.05  # seconds a frame


@dataclass
class Faults:
    """The faults of a plan under way; ``end`` waits until all are undone. ``happened`` tells what was done, in order."""

    plan: Plan
    clusters: Clusters
    directory: Path  # where the windows' processes tell of themselves
    written: list[str]  # topics on the target
    second_window: Callable[[], object]
    happened: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def begin(self) -> None:
        begun = time.monotonic()
        for fault in self.plan.faults:
            thread = threading.Thread(target=self._guarded, args=(fault, begun), name=fault.kind, daemon=True)
            self._threads.append(thread)
            thread.start()

    def end(self) -> None:
        for thread in self._threads:
            thread.join()

    def _guarded(self, fault: Fault, begun: float) -> None:
        time.sleep(max(0.0, begun + fault.at - time.monotonic()))  # the plan's time
        try:
            what = self._do(fault)
        except BaseException as error:
            self.problems.append(f"{fault}: {type(error).__name__}: {error}")
        else:
            self.happened.append(f"{fault}: {what} ({time.monotonic() - begun:.1f} s)")

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
        return _befall_connections(self.clusters.proxy, fault)

    def _befall_node(self, fault: Fault) -> str:
        three = fault.side == self.plan.three
        node: Broker = self.clusters.three.brokers[fault.node] if three else self.clusters.one
        with self.clusters.locks["three" if three else "one"]:
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
                stack.enter_context(denied(self.clusters.one, ResourceType.TOPIC, self.written[0], AclOperation.WRITE))
            time.sleep(fault.seconds)
            with self.clusters.locks["one"]:
                stack.close()
        return "denied and allowed again"

    def _befall_process(self, role: str, do: Callable[[psutil.Process], object]) -> str:
        waiting = Retrying(
            retry=retry_if_result(lambda found: not found), wait=wait_fixed(0.02), stop=stop_after_delay(WAIT_SECONDS)
        )
        try:
            process = waiting(lambda: alive(self.directory, role))[0]
            do(process)
        except (RetryError, psutil.NoSuchProcess):
            return f"no {role} was there"
        return f"process {process.pid}"

    def _kill_worker(self) -> str:
        """A Python worker of Spark, in which a slot runs; its parent is the daemon that forks them."""
        waiting = Retrying(
            retry=retry_if_result(lambda found: not found), wait=wait_fixed(0.02), stop=stop_after_delay(WAIT_SECONDS)
        )
        try:
            worker = waiting(self._workers)[0]
            worker.kill()
        except (RetryError, psutil.NoSuchProcess):
            return "no worker was there"
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


def _befall_connections(proxy: Proxy, fault: Fault) -> str:
    if fault.kind == "cut":
        proxy.cut()
        return "cut"
    if fault.kind == "delay":
        proxy.on_answer = _delay
        time.sleep(fault.seconds)
        if proxy.on_answer is _delay:
            proxy.on_answer = pass_on
        return "delayed"
    loss = Loss(fault.api_key, proxy.requests[fault.api_key] + fault.number)
    if fault.kind == "lose_request":
        proxy.on_request = loss
    else:
        proxy.on_answer = loss
    return "lost" if loss.happened.wait(WAIT_SECONDS) else "not lost in time"


def _delay(_: Exchange, frame: bytes) -> bytes:
    time.sleep(DELAY)
    return frame


def _patiently(do: Callable[[], None]) -> Callable[[], None]:
    retrying = Retrying(stop=stop_after_delay(30), wait=wait_fixed(0.2), reraise=True)
    return lambda: retrying(do)

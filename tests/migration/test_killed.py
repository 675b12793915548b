"""Killed in the midst of a migration's steps, the command or a broker: what is left is done, and the end is the same."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import javaproperties
import pytest

from airmirror.cli.failures import TRY_AGAIN
from airmirror.errors import AirmirrorError
from airmirror.flows import freezing
from airmirror.flows.freezing import owners_now
from airmirror.flows.prepare import Opened
from airmirror.runbooks import draining
from airmirror.runbooks import moving as group_moving
from airmirror.runbooks.migration import consumers, undo
from airmirror.runbooks.migration.order import MoveStep
from airmirror.runbooks.migration.undo import undo_move
from airmirror.runbooks.moving import MappingWriter
from airmirror.wire.moves import GroupMove
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from airmirror_local.processes import Process, start_process
from support.failovers import elsewhere
from support.flows import Mirror
from support.following import numbered, patiently
from support.groups import await_committed, commit
from support.migrations import ORDER, move_of, moving, takes
from support.topics import produce

Side = Literal["source", "target"]
Doing = MoveStep | Literal["undo"]

PATIENT = replace(ORDER, wait=60.0)
# Where a broker is killed, and the steps that bring the move group there.
PLACES: tuple[tuple[tuple[Doing, ...], Doing, object, str], ...] = (
    ((), "mirror", draining, "run_window"),
    ((), "check_groups", consumers, "positions_of"),
    ((), "cut_over_consumers", MappingWriter, "write"),
    (("undo",), "cut_over_consumers", group_moving, "commit_offsets"),
    (("undo",), "cut_over_consumers", consumers, "displaced"),
    ((), "undo", undo, "commit_offsets"),
    (("cut_over_consumers",), "undo", MappingWriter, "write"),
    (("cut_over_consumers",), "cut_over_producers", draining, "run_window"),
    ((), "undo", undo, "unfreeze"),
    (("cut_over_consumers",), "cut_over_producers", freezing, "commit_change"),
    ((), "finish", MappingWriter, "write"),
)


class ToTryAgain(Exception):
    """A command that says so by its exit status."""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[dict[Side, Broker]]:
    """Two clusters of this test's own, which it may kill."""
    sides: tuple[Side, Side] = ("source", "target")
    with ThreadPoolExecutor(2) as pool:
        starting: dict[Side, Future[Broker]] = {
            side: pool.submit(start_broker, tmp_path, side, IMPATIENT) for side in sides
        }
    try:
        yield {side: each.result() for side, each in starting.items()}
    finally:
        for each in starting.values():
            if each.exception() is None:
                each.result().kill()


@dataclass
class Moved:
    """A flow with a group that stands somewhere on both sides; ``records`` were written."""

    flow: Mirror
    group: str
    directory: Path
    records: int = 0

    @classmethod
    def of(cls, brokers: Mapping[Side, Broker], directory: Path) -> Moved:
        """A part was copied."""
        flow, _ = moving(brokers["source"], brokers["target"], directory)
        moved = cls(flow, f"g-{uuid4().hex[:8]}", directory)
        moved.write(20)
        commit(flow.source, moved.group, {(flow.topic, 0): 15})
        flow.run()
        commit(flow.target, moved.group, {(flow.remote_topic, 0): 4})
        return moved

    def write(self, count: int) -> None:
        produce(self.flow.source, self.flow.topic, numbered(count, self.records), partition=0, transactional="commit")
        self.records += count

    def elsewhere(self) -> Opened:
        """Another deployment, whose ledger has seen nothing."""
        return elsewhere(self.flow.opened, self.directory)

    def take(self, doing: Doing) -> None:
        opened = self.elsewhere()
        if doing == "undo":
            undo_move(opened, move_of(opened), PATIENT, lambda phase: None)
        else:
            takes(opened, doing, order=replace(PATIENT, wait=1.0) if doing == "cut_over_consumers" else PATIENT)

    def take_while_killed(self, doing: Doing, place: object, name: str, broker: Broker, *, after: bool) -> None:
        """Take a step, kill the broker when it comes to a place, start it again, and take the step again."""
        real, killed = getattr(place, name), list[Future[None]]()
        with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as patched:

            def kill(*given: Any, **named: Any) -> Any:
                done = real(*given, **named) if after else None
                if not killed:
                    broker.kill()
                    killed.append(pool.submit(broker.restart))
                return done if after else real(*given, **named)

            patched.setattr(place, name, kill)
            try:
                self.take(doing)
            except AirmirrorError as error:
                assert error.transient, error
            assert killed, f"{doing} never came to {name}"
            killed[0].result()
        self.take(doing)

    def check_cut_over(self) -> None:
        """As if nothing had happened: frozen once, the group at its place, every record once."""
        last, flow = self.elsewhere(), self.flow
        assert owners_now(last).frozen.keys() == {flow.topic}
        befores = [each.before for each in last.ledger.of_kind(GroupMove) if not each.is_mark]
        assert befores == [4], "where it stood at the very first"
        await_committed(flow.target, self.group, {(flow.remote_topic, 0): 15})
        assert flow.assert_equal() == self.records

    def check_undone(self) -> None:
        """As it was, to the record."""
        assert owners_now(self.elsewhere()).frozen == {}
        await_committed(self.flow.target, self.group, {(self.flow.remote_topic, 0): 4})
        await_committed(self.flow.source, self.group, {(self.flow.topic, 0): 15})


@pytest.mark.long
def test_the_target_is_killed_when_topics_are_frozen(east: Broker, tmp_path: Path) -> None:
    target = start_broker(tmp_path, "target", IMPATIENT)
    try:
        moved = Moved.of({"source": east, "target": target}, tmp_path)
        moved.take("cut_over_consumers")
        moved.take_while_killed("cut_over_producers", freezing, "commit_change", target, after=True)
        moved.check_cut_over()
    finally:
        target.kill()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("after", [False, True])
def test_brokers_are_killed_at_each_step(own: dict[Side, Broker], tmp_path: Path, side: Side, after: bool) -> None:
    moved = Moved.of(own, tmp_path)
    for before, doing, place, name in PLACES:
        for each in before:
            moved.take(each)
        if name == "run_window":  # that there is something to copy
            moved.write(10)
        moved.take_while_killed(doing, place, name, own[side], after=after)
        if doing == "undo":
            moved.check_undone()
        elif doing == "cut_over_producers":
            moved.check_cut_over()
    assert moved.elsewhere().ledger.of_kind(GroupMove) == []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_command_is_killed_at_any_time(own: dict[Side, Broker], tmp_path: Path) -> None:
    """SIGKILL, at times spread over all of its steps; each time a new process resumes."""
    moved = Moved.of(own, tmp_path)
    alias = moved.flow.flow.source.alias
    lines = {
        "clusters": f"{alias}, west",
        f"{alias}.bootstrap.servers": own["source"].bootstrap,
        "west.bootstrap.servers": own["target"].bootstrap,
        f"{alias}->west.enabled": "true",
        f"{alias}->west.topics": moved.flow.topic,
        f"{alias}->west.move.shop.topics": moved.flow.topic,
        f"{alias}->west.move.quiet.ms": "500",
        "replication.factor": "1",
        "offset.storage.replication.factor": "1",
    }
    config = tmp_path / "mirror.properties"
    config.write_text(javaproperties.dumps(lines, timestamp=None))

    def run(step: str = "run") -> Process:
        given = [f"--config={config}", f"--ledger=sqlite:///{tmp_path}/moved.db", "--move=shop", "--reason=moving day"]
        waits = ["--wait=2"] if step == "run" else []
        command = [sys.executable, "-m", "airmirror.cli.main", "migration", step, *given, *waits, "--yes"]
        return start_process("airmirror", command, tmp_path / "airmirror.log", directory=tmp_path)

    def whole(step: str = "run") -> float:
        began, process = time.monotonic(), run(step)
        try:
            code = process.handle.wait(120)
            if code == TRY_AGAIN:
                raise ToTryAgain(process.log_tail())
            assert code == 0, process.log_tail()
        finally:
            process.kill()
        return time.monotonic() - began

    took = whole()
    moved.check_cut_over()
    whole("undo")
    moved.check_undone()
    for tenth in range(2, 11):
        if not owners_now(moved.flow.opened).frozen:  # a command that was fast has come so far: producers are gone
            moved.write(5)
        process = run()
        time.sleep(took * tenth / 10)  # the time at which it is killed
        process.kill()
    for again in patiently(ToTryAgain):
        with again:  # a window that was killed is at work until its lease ends, and ``--wait`` is shorter
            whole()
    moved.check_cut_over()

"""``airmirror demo --failover``: a source's brokers are killed in mid-write; failed over, rescued, failed back; the proof."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console, RenderableType

from airmirror.cli.plans import finding_lines
from airmirror.cli.tables import Cell, print_all, table
from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.creation import create_topics
from airmirror.clusters.admin.description import NewTopic
from airmirror.errors import counted
from airmirror.flows.prepare import caught_up, open_flow
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.outcome import outcome_of as outcome_of_failback
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.failback.plan import failback_plan
from airmirror.runbooks.failback.rescue import rescue
from airmirror.runbooks.failback.runbook import FAILBACK
from airmirror.runbooks.failback.steps import return_step
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.failover.shown import FailoverOutcome, outcome_of, shown_outcome
from airmirror.runbooks.moving import GroupsActive
from airmirror.runbooks.run import run
from airmirror.runbooks.runbook import Ran
from airmirror_local.demo.frame import Step, prove, start_clusters, steps
from airmirror_local.demo.shop import GROUPS, TOPICS, Shop, Values, differences, disorder, topic_of, values_of, windows
from airmirror_local.stack import FLOW

BACK = "west->east"
WHY, WHO = "east burns", "demo"
WAIT_SECONDS, MEMBERS_SECONDS = 300.0, 3.0
RETURNING = FailbackOrder(reason=WHY, by=WHO, wait=WAIT_SECONDS)
MOST_NAMED = 3
KILLED = "checkout.east"  # the transactional id of a producer of the shop
CONFIGURATION = """
clusters = east, west
east.bootstrap.servers = {east}
west.bootstrap.servers = {west}
east->west.enabled = true
east->west.topics = {topics}
# The reverse flow. It replicates nothing of its own here.
west->east.enabled = true
west->east.topics = nothing-of-its-own
groups = {groups}
emit.checkpoints.interval.seconds = 1
failover.quiet.ms = 1000
emit.heartbeats.enabled = false
replication.factor = 1
offset.storage.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
"""


@dataclass
class FailoverRun:
    """The course of the demo: ``before``, ``over``, ``after`` are values that were acknowledged on east, on west after the
    failover, and on east again. ``east``, ``west``, ``rescued``: values that lie there, by topic of east and partition;
    ``read``: those that each group has read.
    """

    before: Sequence[str] = ()
    over: Sequence[str] = ()
    after: Sequence[str] = ()
    east: Values = field(default_factory=dict)
    west: Values = field(default_factory=dict)
    rescued: Values = field(default_factory=dict)
    read: Mapping[str, Sequence[str]] = field(default_factory=dict)
    returned: int = 0
    failover_seconds: float = 0.0
    failback_seconds: float = 0.0


def run_failover_demo(console: Console, seconds: int) -> int:
    """The exit status: 0 when every acknowledged record is where it must be, once. Leaves nothing running."""
    return prove(
        console,
        lambda directory: _run(console, directory, seconds),
        lambda course: [_table(course), summary(course)],
        doubts,
    )


def _run(console: Console, directory: Path, seconds: int) -> FailoverRun:
    step, course = steps(console), FailoverRun()
    with ExitStack() as stack:
        east, west = start_clusters(stack, step, directory)
        file = directory / "mirror.properties"
        text = {"topics": ", ".join(TOPICS), "groups": ", ".join(GROUPS)}
        file.write_text(CONFIGURATION.format(east=east.bootstrap, west=west.bootstrap, **text))
        ledger = f"sqlite:///{directory / 'ledger.db'}"
        pair = Pair(*(stack.enter_context(open_flow(file, name, ledger)) for name in (FLOW, BACK)))
        source = connect(pair.forward.flow.source)
        create_topics(source, [NewTopic(name, count, 1, {}) for name, count in TOPICS.items()], WAIT_SECONDS)
        shop = Shop(directory)
        stack.callback(shop.kill)
        with step(f"the shop is open on east, and windows follow, for {seconds} s"):
            shop.open("east", east.bootstrap)
            shop.read(east.bootstrap)
            windows(pair.forward, seconds)
        with step("east's brokers are killed in mid-write (SIGKILL)"):
            east.kill()
            shop.kill()
            course.before = shop.acknowledged()
        with step("failed over: what is committed is judged from west alone"):
            made = _fail_over(pair, course)
        print_all(console, *_lost(made))
        with step(f"the shop is open on west, for {seconds} s; east comes back, with its data"):
            before = len(shop.acknowledged())
            shop.open("west", west.bootstrap, prefix="east.")
            shop.read(west.bootstrap, prefix="east.")
            time.sleep(seconds)
            east.restart()
        with step("the producer that was killed comes back, and ends its transaction"):
            Producer({"bootstrap.servers": east.bootstrap, "transactional.id": KILLED}).init_transactions(WAIT_SECONDS)
        _rescue(console, step, pair)
        with step("what was written on west returns, while the shop is open"):
            return_step(pair, RETURNING)
            windows(caught_up(pair.reverse), seconds)
        with step("the shop closes on west, and is failed back"):
            shop.close()
            shop.leave()
            course.over = shop.acknowledged()[before:]
            done = _fail_back(pair)
            course.failback_seconds = done.seconds
            course.returned = sum(
                each.records
                for each in outcome_of_failback(pair, RETURNING, done.gave["move_groups"], done.seconds).returned
            )
        with step(f"the shop is open on east again, for {seconds} s"):
            before = len(shop.acknowledged())
            shop.open("east-again", east.bootstrap)
            shop.read(east.bootstrap)
            windows(pair.forward, seconds)
            shop.close()
            course.after = shop.acknowledged()[before:]
            windows(pair.forward, 0)
        with step("consumers read to the end, and stop"):
            shop.await_read([*course.over, *course.after], WAIT_SECONDS)
            shop.leave()
        with step("reading every record of both clusters again"):
            _read(pair, course)
            course.read = {group: shop.read_by(group) for group in GROUPS}
    return course


def _fail_over(pair: Pair, course: FailoverRun) -> FailoverOutcome:
    order = FailoverOrder(way="disaster", reason=WHY, by=WHO)
    ran = run(FAILOVER, pair.forward, order)
    course.failover_seconds = ran.seconds
    return outcome_of(pair.forward, order, ran.gave["judge"], ran.gave["move_groups"], ran.seconds)


def _fail_back(pair: Pair) -> Ran:
    """All steps; again, as long as consumers that were killed with east count as members of their groups there."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return run(FAILBACK, pair, RETURNING)
        except GroupsActive:
            if time.monotonic() > until:
                raise
            time.sleep(MEMBERS_SECONDS)  # the sampling interval: a coordinator tells nobody that a session has ended


def _lost(made: FailoverOutcome) -> Iterator[str]:
    """Yield what is known of what was not replicated, before east is back."""
    yield f"  {shown_outcome(made).headline}"
    for point in made.plan.partitions:
        yield f"  {point.key}: nothing from offset {point.verified_end} on is known to be replicated"


def _rescue(console: Console, step: Step, pair: Pair) -> None:
    with step("what diverged, record by record"):
        plan = failback_plan(pair.forward)
    print_all(console, *finding_lines(plan.findings), f"  {plan.headline}")
    with step("what was not replicated is rescued"):
        _, plan = rescue(pair.forward, RETURNING)
    print_all(console, f"  {plan.headline}")


def _read(pair: Pair, course: FailoverRun) -> None:
    """Every record of the topics on both sides, and of those that were rescued, by the names that topics have on east."""
    source, target = pair.forward.flow.source, pair.forward.flow.target
    course.east = values_of(source, TOPICS)
    course.west = _by_name(values_of(target, [f"east.{topic}" for topic in TOPICS]))
    there = connect(target).topic_names()
    course.rescued = _by_name(values_of(target, [name for name in there if ".rescued." in name]))


def _by_name(values: Values) -> Values:
    return {
        (name.removeprefix("east.").partition(".rescued.")[0], number): its for (name, number), its in values.items()
    }


def doubts(course: FailoverRun) -> Iterator[str]:
    """Yield the reasons why nothing is proven: each acknowledged record is exactly where it must be."""
    rescued, west, east = (_flat(each) for each in (course.rescued, course.west, course.east))
    if not (course.before and course.over and course.after and rescued and course.returned):
        yield "nothing was written before, after or in between, nothing was rescued, or nothing returned"
    before = set(course.before)
    yield from _said("on west, or rescued", before, [each for each in (*west, *rescued) if each in before])
    later = {*course.over, *course.after}
    for where, found in (("on west", west), ("on east", east)):
        yield from _said(where, later, [each for each in found if each in later])
        twice = [value for value, count in Counter(found).items() if count > 1]
        yield from (f"{where}: {value} lies there twice" for value in twice[:MOST_NAMED])
    for name, logs in (("east", course.east), ("west", course.west)):
        yield from (f"{name}: {what}" for what in disorder(logs))
    for group, (_, topics) in GROUPS.items():
        wanted = [value for value in (*course.over, *course.after) if topic_of(value) in topics]
        read = [value for value in course.read.get(group, ()) if value in later]
        yield from (f"group {group}: {what}" for what in differences(wanted, read))


def _said(where: str, wanted: set[str], found: Sequence[str]) -> Iterator[str]:
    yield from (f"{where}: {what}" for what in differences(sorted(wanted), found))


def _flat(values: Values) -> list[str]:
    return [value for its in values.values() for value in its]


def _shown(course: FailoverRun) -> list[RenderableType]:
    return [_table(course), summary(course)]


def _table(course: FailoverRun) -> RenderableType:
    columns = ("written on", ">acknowledged", ">on east", ">on west", ">rescued")
    cells: list[list[Cell]] = []
    parts = (("east, until it was killed", course.before), ("west", course.over), ("east again", course.after))
    for name, values in parts:
        known = set(values)
        places = (_flat(course.east), _flat(course.west), _flat(course.rescued))
        cells.append([name, len(values), *(sum(each in known for each in its) for its in places)])
    return table(f"{FLOW}: both clusters, read again", columns, cells)


def summary(course: FailoverRun) -> str:
    """All of it in a few sentences."""
    return (
        f"{counted(len(course.before) + len(course.over) + len(course.after), 'record')} were acknowledged. The failover took "
        f"{course.failover_seconds:.1f} s, brokers that do not answer included; {counted(len(_flat(course.rescued)), 'record')} "
        f"without a copy were rescued; {course.returned:,} returned, and the last step back took "
        f"{course.failback_seconds:.1f} s. Groups have read every record since the failover once. Everything is stopped."
    )

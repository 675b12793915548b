"""``airmirror demo --migration``: a small shop moves to another cluster, taken back once in between, and at the end over the flow
back; the proof."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console, RenderableType

from airmirror.cli.tables import GOOD, Cell, line, print_all, table
from airmirror.flows.prepare import caught_up, open_flow
from airmirror.runbooks.draining import SourceNotQuiet
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.migration.chosen import chosen_move
from airmirror.runbooks.migration.order import MoveOrder, MoveStep
from airmirror.runbooks.migration.steps import take
from airmirror.runbooks.migration.undo import undo_move
from airmirror.runbooks.runbook import Progress
from airmirror_local.demo.frame import Step as DemoStep
from airmirror_local.demo.frame import prove, start_clusters, steps
from airmirror_local.demo.shop import (
    GROUPS,
    POLL_SECONDS,
    TOPICS,
    Shop,
    Values,
    differences,
    disorder,
    topic_of,
    values_of,
    windows,
)
from airmirror_local.stack import FLOW

BACK, MOVE = "west->east", "shop"
WAIT_SECONDS, SOON_SECONDS = 300.0, 3.0
CONFIGURATION = """
clusters = east, west
east.bootstrap.servers = {east}
west.bootstrap.servers = {west}
east->west.enabled = true
east->west.topics = {topics}
# The reverse flow, looked at before producers are cut over. It replicates nothing of its own.
west->east.enabled = true
west->east.topics = nothing-of-its-own
# Topics keep their names.
replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
east->west.move.shop.topics = {topics}
move.reverse = true
move.quiet.ms = 1000
failover.quiet.ms = 1000
emit.checkpoints.interval.seconds = 1
# Of a real one: a day, or longer.
move.soak.ms = 0
emit.heartbeats.enabled = false
replication.factor = 1
offset.storage.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
"""


@dataclass
class MigrationRun:
    """What happened. ``acknowledged``: values of records by topic; ``here``, ``there``: those on east and west, by
    partition; ``read``: those that each group has read."""

    acknowledged: Mapping[str, Sequence[str]] = field(default_factory=dict)
    here: Values = field(default_factory=dict)
    there: Values = field(default_factory=dict)
    read: Mapping[str, Sequence[str]] = field(default_factory=dict)
    named: Sequence[str] = ()  # who was named as still writing
    moved_seconds: float = 0.0
    returned_seconds: float = 0.0


def run_migration_demo(console: Console, seconds: int) -> int:
    """The exit status: 0 when every acknowledged record is on the target, and each group has read each once. Leaves nothing
    running."""
    return prove(
        console,
        lambda directory: _run(console, directory, seconds),
        lambda course: [_table(course), summary(course)],
        doubts,
    )


def _run(console: Console, directory: Path, seconds: int) -> MigrationRun:
    step, course = steps(console), MigrationRun()
    with ExitStack() as stack:
        servers = {each.name: each.bootstrap for each in start_clusters(stack, step, directory)}
        admin = AdminClient({"bootstrap.servers": servers["east"], "log_level": 3})
        for made in admin.create_topics([NewTopic(name, count, 1) for name, count in TOPICS.items()]).values():
            made.result()
        file = directory / "mirror.properties"
        file.write_text(CONFIGURATION.format(**servers, topics=", ".join(TOPICS)))
        ledger = f"sqlite:///{directory / 'ledger.db'}"
        pair = Pair(*(stack.enter_context(open_flow(file, name, ledger)) for name in (FLOW, BACK)))
        shop = Shop(directory)
        stack.callback(shop.close)
        stack.callback(shop.leave)
        with step(f"the shop is open on east, for {seconds} s"):
            shop.open("east", servers["east"])
            shop.read(servers["east"])
            _await_more(shop, {})
            time.sleep(seconds)
        _move(console, step, pair, shop, servers, course)
        with step(f"the shop is open on west, for {seconds} s, and windows of {BACK} copy it back"):
            shop.open("west", servers["west"])
            windows(caught_up(pair.reverse), seconds)
        with step("the shop closes on west, and its consumers read to the end"):
            shop.close()
            shop.await_read(shop.acknowledged(), WAIT_SECONDS)
            shop.leave()
        with step("undone, over the reverse flow: the rest returns, and is verified; groups go back"):
            begun = time.monotonic()
            forward = caught_up(pair.forward)
            undone = undo_move(forward, chosen_move(forward, MOVE), _order(WAIT_SECONDS), _nothing, pair.reverse)
            course.returned_seconds = time.monotonic() - begun
        print_all(console, *(f"  {each}" for each in undone.lines))
        with step(f"the shop is open on east again, for {seconds} s"):
            shop.open("east-again", servers["east"])
            shop.read(servers["east"])
            time.sleep(seconds)
            shop.close()
        with step("consumers read to the end, and stop"):
            shop.await_read(shop.acknowledged(), WAIT_SECONDS)
            shop.leave()
        _take(console, pair, "mirror")
        with step("reading every record of both clusters again"):
            course.here = values_of(pair.forward.flow.source, TOPICS)
            course.there = values_of(pair.forward.flow.target, TOPICS)
            course.acknowledged = _by_topic(shop.acknowledged(), course.there)
            course.read = {group: shop.read_by(group) for group in GROUPS}
    return course


def _move(
    console: Console, step: DemoStep, pair: Pair, shop: Shop, servers: Mapping[str, str], course: MigrationRun
) -> None:
    """Consumers first; taken back once; then producers are cut over, and the reverse flow begins."""
    _take(console, pair, "mirror")
    _take(console, pair, "check_groups")
    for attempt in ("consumers are cut over", "and, after an undo, again"):
        with step(f"{attempt}: they stop on east"):
            shop.leave()
        _take(console, pair, "cut_over_consumers")
        with step("consumers start on west, and read what windows copy"):
            before = shop.counts()
            shop.read(servers["west"])
            _take(console, pair, "mirror")
            _await_more(shop, before)
        if attempt == "consumers are cut over":
            with step("undone: they resume on east, at the very next record"):
                shop.leave()
                undo_move(pair.forward, chosen_move(pair.forward, MOVE), _order(SOON_SECONDS), _nothing)
                before = shop.counts()
                shop.read(servers["east"])
                _await_more(shop, before)
    _take(console, pair, "reverse")
    with step("producers that do not stop are named"):
        try:
            take("cut_over_producers", pair, _order(SOON_SECONDS))
        except SourceNotQuiet as error:
            course.named = error.reasons
    print_all(console, *(f"  {each}" for each in course.named))
    with step("producers stop on east"):
        shop.close()
    begun = time.monotonic()
    _take(console, pair, "cut_over_producers")
    course.moved_seconds = time.monotonic() - begun


def _take(console: Console, pair: Pair, step: MoveStep) -> None:
    """Take a step, and show what came of it."""
    order = _order(SOON_SECONDS if step == "cut_over_consumers" else WAIT_SECONDS)
    take(step, pair, order, Progress(line=lambda text: print_all(console, line(step, text, GOOD))))


def _order(wait: float) -> MoveOrder:
    return MoveOrder(move=MOVE, reason="moving day", by="demo", wait=wait)


def _nothing(_phase: str) -> None:
    """Tell nobody of the phases of an undo: the demo shows what came of it."""


def _await_more(shop: Shop, before: Mapping[str, int]) -> None:
    """Wait until each group has read something more. Raises TimeoutError."""
    until = time.monotonic() + WAIT_SECONDS
    while any(count <= before.get(group, 0) for group, count in shop.counts().items()):
        if time.monotonic() > until:
            raise TimeoutError(f"groups have read no more than {shop.counts()} records in {WAIT_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)


def _reads(group: str, value: str) -> bool:
    """Return whether a group reads the topic of a record."""
    return topic_of(value) in GROUPS[group][1]


def _by_topic(values: Sequence[str], there: Values) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {topic: [] for topic, _ in there}
    for value in values:
        found[topic_of(value)].append(value)
    return found


def _of_topic(logs: Values, topic: str) -> list[str]:
    return [value for key, its in logs.items() if key[0] == topic for value in its]


def doubts(course: MigrationRun) -> Iterator[str]:
    """Yield the reasons why nothing is proven."""
    if not course.named or not any(course.acknowledged.values()):
        yield "nothing was produced, or nobody was named who still wrote"
    for where, logs in (("east", course.here), ("west", course.there)):
        for topic, values in course.acknowledged.items():
            yield from (f"{where}, {topic}: {what}" for what in differences(values, _of_topic(logs, topic)))
        yield from (f"{where}, {what}" for what in disorder(logs))
    for group, values in course.read.items():
        wanted = [value for its in course.acknowledged.values() for value in its if _reads(group, value)]
        yield from (f"group {group}: {what}" for what in differences(wanted, values))


def _table(course: MigrationRun) -> RenderableType:
    columns = ("topic", ">acknowledged", ">on east, once, in order", ">on west")
    cells: list[list[Cell]] = [
        [topic, len(values), *(len(_of_topic(logs, topic)) for logs in (course.here, course.there))]
        for topic, values in course.acknowledged.items()
    ]
    return table(f"{FLOW}: both clusters, read again", columns, cells)


def summary(course: MigrationRun) -> str:
    """All of it in a few sentences."""
    read = ", ".join(f"{group} {len(values):,}" for group, values in course.read.items())
    count = sum(map(len, course.acknowledged.values()))
    return (
        f"{count:,} records were acknowledged, on east, on west, and on east again. Each group has read every record of "
        f"its topics once, across two cut-overs, an undo, and one over the reverse flow: {read}. From the last stop to frozen "
        f"topics took {course.moved_seconds:.1f} s, and back {course.returned_seconds:.1f} s. Everything is stopped."
    )

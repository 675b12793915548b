"""``airmirror demo --migration``: a small shop moves from one cluster to another, once taken back in between; the proof."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from rich.console import Console, RenderableType

from airmirror.cli.steps import steps
from airmirror.cli.tables import GOOD, Cell, line, show, table
from airmirror.clusters.protocol.log import read_records
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster
from airmirror.errors import AirmirrorError
from airmirror.flows.draining import SourceNotQuiet
from airmirror.flows.prepare import Opened, open_flow
from airmirror.flows.stillness import ends_of
from airmirror.local import LOCAL
from airmirror.migration.chosen import chosen_move
from airmirror.migration.order import MoveOrder, Step
from airmirror.migration.steps import do_step
from airmirror.migration.undo import undo_move
from airmirror_local.brokers import start_broker
from airmirror_local.shop import App, Kind, Protocol, start_consumer, start_producer
from airmirror_local.stack import FLOW

TOPICS = {"orders": 3, "payments": 2, "stock": 1}
PRODUCERS: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "checkout": ("transactional", ("orders", "payments")),
    "tills": ("idempotent", ("orders", "stock")),
    "scales": ("plain", ("stock",)),
}
GROUPS: dict[str, tuple[Protocol, tuple[str, ...]]] = {
    "billing": ("classic", ("orders", "payments")),
    "shipping": ("consumer", ("orders", "stock")),
}
WAIT_SECONDS, SOON_SECONDS, POLL_SECONDS = 300.0, 3.0, 0.2
CONFIGURATION = """
clusters = east, west
east.bootstrap.servers = {east}
west.bootstrap.servers = {west}
east->west.enabled = true
east->west.topics = {topics}
# Topics keep their names.
replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
east->west.move.shop.topics = {topics}
move.quiet.ms = 1000
# Of a real one: a day, or longer.
move.soak.ms = 0
emit.heartbeats.enabled = false
replication.factor = 1
offset.storage.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
"""

Step_ = Callable[[str], AbstractContextManager[object]]


@dataclass
class Course:
    """What happened. ``acknowledged``: values of records by topic; ``there``: those on the target, by partition;
    ``read``: those that each group has read."""

    acknowledged: Mapping[str, Sequence[str]] = field(default_factory=dict)
    there: Mapping[tuple[str, int], Sequence[str]] = field(default_factory=dict)
    read: Mapping[str, Sequence[str]] = field(default_factory=dict)
    named: Sequence[str] = ()  # who was named as still writing
    moved_seconds: float = 0.0


@dataclass
class Shop:
    """The applications that were started, and where they are now."""

    directory: Path
    producers: list[App] = field(default_factory=list)
    consumers: dict[str, list[App]] = field(default_factory=dict)

    def open(self, cluster: str, bootstrap: str, prefix: str = "") -> None:
        """Producers start; ``prefix``: of the names that topics have there."""
        for name, (kind, topics) in PRODUCERS.items():
            there = [f"{prefix}{topic}" for topic in topics]
            self.producers.append(start_producer(self.directory, f"{name}.{cluster}", kind, bootstrap, there))

    def close(self) -> None:
        """Producers stop, all of what they began is acknowledged."""
        for app in self.producers:
            app.stop()

    def read(self, bootstrap: str, prefix: str = "") -> None:
        """Consumers start; ``prefix``: of the names that topics have there."""
        for group, (protocol, topics) in GROUPS.items():
            there = [f"{prefix}{topic}" for topic in topics]
            app = start_consumer(self.directory, group, protocol, bootstrap, there)
            self.consumers.setdefault(group, []).append(app)

    def leave(self) -> None:
        """Consumers stop."""
        for apps in self.consumers.values():
            for app in apps:
                app.stop()

    def kill(self) -> None:
        """All of them are gone at once. They may be."""
        for app in (*self.producers, *(each for apps in self.consumers.values() for each in apps)):
            app.process.kill()

    def acknowledged(self) -> list[str]:
        return [each for app in self.producers for each in app.lines()]

    def counts(self) -> dict[str, int]:
        """The number of records that each group has read."""
        return {group: len(self.read_by(group)) for group in GROUPS}

    def read_by(self, group: str) -> list[str]:
        return [each for app in self.consumers.get(group, ()) for each in app.lines()]


def run_migration_demo(console: Console, seconds: int) -> int:
    """The exit status: 0 when every acknowledged record is on the target, and each group has read each once. Leaves nothing
    running."""
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="demo-", dir=LOCAL))
    try:
        course = _run(console, directory, seconds)
    except (AirmirrorError, TimeoutError) as error:
        show(console, line("failed", error))
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    found = list(doubts(course))
    show(console, _table(course), summary(course), *(line("not proven", doubt) for doubt in found))
    return 1 if found else 0


def _run(console: Console, directory: Path, seconds: int) -> Course:
    step, course = steps(console), Course()
    with ExitStack() as stack:
        servers = {}
        for name in ("east", "west"):
            with step(f"starting cluster {name}"):
                broker = start_broker(directory, name)
            stack.callback(broker.process.kill)
            servers[name] = broker.bootstrap
        admin = AdminClient({"bootstrap.servers": servers["east"], "log_level": 3})
        for made in admin.create_topics([NewTopic(name, count, 1) for name, count in TOPICS.items()]).values():
            made.result()
        file = directory / "mirror.properties"
        file.write_text(CONFIGURATION.format(**servers, topics=", ".join(TOPICS)))
        opened = stack.enter_context(open_flow(file, FLOW, f"sqlite:///{directory / 'ledger.db'}"))
        shop = Shop(directory)
        stack.callback(shop.close)
        stack.callback(shop.leave)
        with step(f"the shop is open on east, for {seconds} s"):
            shop.open("east", servers["east"])
            shop.read(servers["east"])
            _await_more(shop, {})
            time.sleep(seconds)
        _move(console, step, opened, shop, servers, course)
        with step(f"the shop is open on west, for {seconds} s"):
            shop.open("west", servers["west"])
            time.sleep(seconds)
            shop.close()
        with step("consumers read to the end, and stop"):
            _await_read(shop, {group: sum(_reads(group, each) for each in shop.acknowledged()) for group in GROUPS})
            shop.leave()
        _take(console, opened, "finish")
        with step("reading every record of west again"):
            course.there = values_of(opened.flow.target, TOPICS)
            course.acknowledged = _by_topic(shop.acknowledged(), course.there)
            course.read = {group: shop.read_by(group) for group in GROUPS}
    return course


def _move(
    console: Console, step: Step_, opened: Opened, shop: Shop, servers: Mapping[str, str], course: Course
) -> None:
    """Consumers first; taken back once; then the producers."""
    _take(console, opened, "mirror")
    _take(console, opened, "check_groups")
    for attempt in ("consumers are switched", "and, after an undo, again"):
        with step(f"{attempt}: they stop on east"):
            shop.leave()
        _take(console, opened, "switch_consumers")
        with step("consumers start on west, and read what windows copy"):
            before = shop.counts()
            shop.read(servers["west"])
            _take(console, opened, "mirror")
            _await_more(shop, before)
        if attempt == "consumers are switched":
            with step("undone: they go on on east, at the very next record"):
                shop.leave()
                undo_move(opened, chosen_move(opened, "shop"), _order(SOON_SECONDS), lambda phase: None)
                before = shop.counts()
                shop.read(servers["east"])
                _await_more(shop, before)
    with step("producers that do not stop are named"):
        try:
            list(do_step(opened, _order(SOON_SECONDS), "switch_producers"))
        except SourceNotQuiet as error:
            course.named = error.reasons
    show(console, *(f"  {each}" for each in course.named))
    with step("producers stop on east"):
        shop.close()
    begun = time.monotonic()
    _take(console, opened, "switch_producers")
    course.moved_seconds = time.monotonic() - begun


def _take(console: Console, opened: Opened, step: Step) -> None:
    """Take a step, and show what came of it."""
    for text in do_step(opened, _order(SOON_SECONDS if step == "switch_consumers" else WAIT_SECONDS), step):
        show(console, line(step, text, GOOD))


def _order(wait: float) -> MoveOrder:
    return MoveOrder("shop", "moving day", "demo", wait)


def _await_more(shop: Shop, before: Mapping[str, int]) -> None:
    """Wait until each group has read something more."""
    _await_read(shop, {group: before.get(group, 0) + 1 for group in GROUPS})


def _await_read(shop: Shop, wanted: Mapping[str, int]) -> None:
    """Wait until each group has read that many records. Raises TimeoutError."""
    until = time.monotonic() + WAIT_SECONDS
    while any(shop.counts()[group] < count for group, count in wanted.items()):
        if time.monotonic() > until:
            raise TimeoutError(f"groups have read {shop.counts()} records in {WAIT_SECONDS:.0f} s, not {dict(wanted)}")
        time.sleep(POLL_SECONDS)  # the sampling interval: files tell nobody that they grew


def _reads(group: str, value: str) -> bool:
    """Return whether a group reads the topic of a record."""
    return topic_of(value) in GROUPS[group][1]


def topic_of(value: str) -> str:
    """The topic that a record was written to, from its value: a producer takes its topics in turn."""
    name, _, number = value.rpartition("-")
    topics = PRODUCERS[name.partition(".")[0]][1]
    return topics[int(number) % len(topics)]


def _by_topic(values: Sequence[str], there: Mapping[tuple[str, int], Sequence[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {topic: [] for topic, _ in there}
    for value in values:
        found[topic_of(value)].append(value)
    return found


def values_of(cluster: Cluster, topics: Collection[str]) -> dict[tuple[str, int], list[str]]:
    """The values of all committed records of topics, in order, by topic and partition."""
    with Routes(cluster, "airmirror|demo") as routes:
        return {
            key: [(each.value or b"").decode() for each in read_records(routes, key, 0, end, read_committed=True)]
            for key, end in ends_of(routes, topics).items()
        }


def doubts(course: Course) -> Iterator[str]:
    """Yield the reasons why nothing is proven."""
    if not course.named or not any(course.acknowledged.values()):
        yield "nothing was produced, or nobody was named who still wrote"
    for topic, values in course.acknowledged.items():
        there = [value for key, its in course.there.items() if key[0] == topic for value in its]
        yield from (f"{topic}: {what}" for what in differences(values, there))
    for key, values in course.there.items():
        last: dict[str, int] = {}
        for value in values:
            name, _, number = value.rpartition("-")
            if int(number) <= last.get(name, 0):
                yield f"{key[0]}-{key[1]}: {value} lies after {name}-{last[name]}"
            last[name] = int(number)
    for group, values in course.read.items():
        wanted = [value for its in course.acknowledged.values() for value in its if _reads(group, value)]
        yield from (f"group {group}: {what}" for what in differences(wanted, values))


def differences(wanted: Sequence[str], found: Sequence[str]) -> Iterator[str]:
    """Yield how records that were found differ from those that should be there, each once."""
    more, less = Counter(found) - Counter(wanted), Counter(wanted) - Counter(found)
    if less:
        yield f"{less.total():,} records are missing, the first is {next(iter(less))}"
    if more:
        yield f"{more.total():,} records are there twice, or of nobody, the first is {next(iter(more))}"


def _table(course: Course) -> RenderableType:
    columns = ("acknowledged", "on west, once, in order")
    cells: list[list[Cell]] = [
        [topic, len(values), sum(len(its) for key, its in course.there.items() if key[0] == topic)]
        for topic, values in course.acknowledged.items()
    ]
    return table(f"{FLOW}: west, read again", ("topic", *columns), cells, right=columns)


def summary(course: Course) -> str:
    """All of it in a few sentences."""
    read = ", ".join(f"{group} {len(values):,}" for group, values in course.read.items())
    count = sum(map(len, course.acknowledged.values()))
    return (
        f"{count:,} records were acknowledged, on east before the switch and on west after it. Each group has read every record "
        f"of its topics once, across two switches and an undo: {read}. From the last stop to closed topics took "
        f"{course.moved_seconds:.1f} s. Everything is stopped."
    )

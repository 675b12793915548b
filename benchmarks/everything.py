"""Everything at once in one process: windows that follow, groups, migrations and their undo, rehearsals, maintenance.

A part of ``python -m benchmarks.soak``. A shop's application moves to the target and back with its migration every five minutes;
another application stays. What the process holds, how late records are, and how many rows the ledger has, is looked at
meanwhile, and *at rest*: between two windows, when the ledger has forgotten what it may.
"""

from __future__ import annotations

import gc
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from rich.console import Console

from airmirror.errors import AirmirrorError
from airmirror.flows.following import following_of
from airmirror.flows.gates import expectations_of
from airmirror.flows.maintenance import prune
from airmirror.flows.prepare import Opened, open_flow, prepare
from airmirror.runbooks.draining import in_threads
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.runbook import MIGRATION
from airmirror.runbooks.run import run, undo
from airmirror.runbooks.runbook import SILENT
from airmirror.windows.errors import FlowBusy
from airmirror.windows.fence import end_window
from airmirror.windows.window import WindowOrder, run_window
from airmirror_local.brokers import Broker
from benchmarks.data import create_topic
from benchmarks.steady import BURSTS, COMMITTED, closing_consumer
from benchmarks.windows import CONFIGURATION

STAYS, MOVES, SHOP, READERS, FLOW = "stays", "moves", "shop", "readers", "all->west"
PARTITIONS, SLOTS = 4, 2
RATES = {STAYS: 900, MOVES: 100}  # records a second
LOOK_SECONDS = 10.0
MIGRATE_SECONDS, REHEARSE_SECONDS = 300.0, 600.0
MEMORY_LIMIT, LAG_LIMIT = 1.05, 60.0  # times what it was; seconds
FOLLOW_SECONDS = 120.0  # of one window; then the next one begins
SETTINGS = f"""window.slot.bytes = 1
window.follow.ms = {FOLLOW_SECONDS * 1000:.0f}
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 5
emit.checkpoints.interval.seconds = 5
checkpoints.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
{FLOW}.move.{SHOP}.topics = {MOVES}
{FLOW}.move.{SHOP}.groups = {SHOP}
{FLOW}.move.quiet.ms = 1000
{FLOW}.move.soak.ms = 0
"""
ORDER = MoveOrder(move=SHOP, reason="an hour of everything", by="soak", wait=120.0)


@dataclass(frozen=True)
class Sample:
    """What is held ``minutes`` after the beginning. ``resident``: bytes; ``lag``: seconds; ``rows``: of the ledger,
    but for what it keeps for plots, which has a bound of its own (ledger.samples)."""

    minutes: float
    resident: int
    descriptors: int
    threads: int
    lag: float
    rows: int
    at_rest: bool


@dataclass
class Hour:
    """What was seen, and how often what was done; ``produced`` and ``copied``: records by topic of the source."""

    samples: list[Sample] = field(default_factory=list)
    windows: int = 0
    migrations: int = 0
    rehearsals: int = 0
    produced: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RATES, 0))
    copied: dict[str, int] = field(default_factory=dict)

    def wrong(self) -> list[str]:
        """What is not within its limit: of what is held after the first sixth of the time, and of how often what was done."""
        minutes = self.samples[-1].minutes
        late = [each for each in self.samples if each.minutes >= minutes / 6]
        rests = [each for each in late if each.at_rest]
        if len(rests) < 2:
            return ["nothing was at rest twice"]
        first, last = rests[0], rests[-1]
        found = [name for name in ("descriptors", "threads", "rows") if getattr(last, name) > getattr(first, name)]
        found += ["memory"] if max(each.resident for each in rests) > MEMORY_LIMIT * first.resident else []
        found += ["lag"] if max(each.lag for each in late) > LAG_LIMIT else []
        least = least_rounds(minutes)
        return found + [name for name, count in least.items() if getattr(self, name) < count]


def least_rounds(minutes: float) -> dict[str, int]:
    """How many migrations and rehearsals there must be in so many minutes: one may be under way, and the first is late."""
    migrations = math.ceil(minutes * 60 / MIGRATE_SECONDS) - 2
    rehearsals = math.ceil(minutes * 60 / REHEARSE_SECONDS) - 1
    return {"migrations": max(1, migrations), "rehearsals": max(1, rehearsals)}


def everything(console: Console, directory: Path, source: Broker, target: Broker, seconds: float) -> Hour:
    """Do everything for so long; then all that was produced must be on the target, and read by its application.

    Raises RuntimeError where it is not, and what any part raises.
    """
    for topic in RATES:
        create_topic(source.bootstrap, topic, partitions=PARTITIONS)
    (directory / "all.properties").write_text(
        CONFIGURATION.format(
            alias="all",
            source=source.bootstrap,
            target=target.bootstrap,
            topics=", ".join(RATES),
            replicas=1,
            verify="readback",
        )
        + SETTINGS
    )
    work = _Work(console, directory, source.bootstrap, target.bootstrap, int(seconds * RATES[MOVES] * 1.1))
    parts = (work.produce, work.read_on, work.read_there, work.windows, work.procedures, work.look)
    with ThreadPoolExecutor(len(parts)) as pool:
        futures = [pool.submit(work.until_one_fails, each) for each in parts]
        wait(futures, timeout=seconds, return_when=FIRST_EXCEPTION)
        work.end()
        for future in futures:
            future.result()
    work.finish()
    return work.hour


class _Work:
    """The parts, each in a thread of its own until ``ended``."""

    def __init__(self, console: Console, directory: Path, source: str, target: str, most: int) -> None:
        self.ended, self.hour = threading.Event(), Hour()
        self._console, self._directory, self._source, self._target = console, directory, source, target
        self._begun, self._seen = time.monotonic(), bytearray(most)  # a byte for each record of the shop
        self._newest = time.time()  # of what can be read on the target
        self._sells = threading.Event()  # the shop's producer and consumers are at work on the source
        self._sells.set()
        self._has_stopped = threading.Semaphore(0)  # one for its producer, one for its consumers
        self._moves = threading.Lock()  # a procedure is under way: maintenance waits

    def until_one_fails(self, part: Callable[[], None]) -> None:
        """Do a part; whatever ends one ends all."""
        try:
            part()
        finally:
            self.ended.set()

    def produce(self) -> None:
        """Write the records of both topics; of the shop's only while it sells."""
        producer, due, sold = Producer({"bootstrap.servers": self._source, "linger.ms": 0}), time.monotonic(), True
        while not self.ended.wait(max(0.0, due - time.monotonic())):
            sells = self._sells.is_set()
            for topic in RATES if sells else (STAYS,):
                for _ in range(RATES[topic] // BURSTS):
                    producer.produce(topic, b"%d" % self.hour.produced[topic])
                    self.hour.produced[topic] += 1
            producer.poll(0)
            if sold and not sells:
                producer.flush()
                self._has_stopped.release()
            sold, due = sells, due + 1 / BURSTS
        producer.flush()
        self._has_stopped.release()  # for a procedure that waits while all ends

    def read_on(self) -> None:
        """The applications on the source: of the topic that stays, and the shop's while it sells."""
        with _member(self._source, READERS, STAYS) as readers:
            while not self.ended.is_set():
                with _member(self._source, SHOP, MOVES) as shop:
                    while self._sells.is_set() and not self.ended.is_set():
                        self._read(shop)
                        readers.consume(1000, 0.1)
                self._has_stopped.release()
                while not self._sells.is_set() and not self.ended.is_set():
                    readers.consume(1000, 0.1)

    def read_there(self) -> None:
        """An application on the target, which knows how late records are."""
        with _member(self._target, "there", f"all.{STAYS}") as consumer:
            while not self.ended.is_set():
                for message in consumer.consume(1000, 0.1):
                    if message.error() is None:
                        self._newest = max(self._newest, message.timestamp()[1] / 1000)

    def windows(self) -> None:
        """One window after the other, each of which follows until another wants its lease; in between the ledger forgets."""
        expectations = expectations_of(None)
        while not self.ended.is_set():
            window = self._window
            with self._opened() as opened:
                following = following_of(opened, expectations, window=window)
                try:
                    topics = prepare(opened).topics
                    order = WindowOrder(window, slots=lambda _: SLOTS, following=following)
                    run_window(opened.flow, opened.ledger, topics, in_threads, order)
                except AirmirrorError as error:  # procedures want the lease too; what is missing is told in the end
                    self._console.print(f"{self._minutes:.1f} min: {window}: {error}")
                    self.ended.wait(1.0)
            self.hour.windows += 1
            self._rest()

    def end(self) -> None:
        """End all parts, and the window that follows."""
        self.ended.set()
        with self._opened() as opened:
            end_window(opened.flow, opened.ledger, self._window)

    def _rest(self) -> None:
        if not self._moves.acquire(blocking=False):
            return
        try:
            with self._opened() as opened:
                prune(opened, 0)
            self._sample(at_rest=True)
        except FlowBusy as busy:
            self._console.print(f"{self._minutes:.1f} min: {busy}")
        finally:
            self._moves.release()

    def procedures(self) -> None:
        """A migration and its undo every five minutes, a rehearsal of a failover every ten; the first after a minute."""
        rounds, each = 0, REHEARSE_SECONDS / MIGRATE_SECONDS
        while not self.ended.wait(max(0.0, self._begun + 60 + rounds * MIGRATE_SECONDS - time.monotonic())):
            with self._moves:
                self._there_and_back()
                if rounds % each == 0:
                    self._rehearse()
            rounds += 1
            self._console.print(f"{self._minutes:.1f} min: {rounds} migrations, {self.hour.windows} windows")

    def _there_and_back(self) -> None:
        self._sells.clear()
        for _ in range(2):
            self._has_stopped.acquire()
        with self._opened() as opened:
            run(MIGRATION, Pair(opened, None), ORDER)
        with _member(self._target, SHOP, f"all.{MOVES}") as shop:
            self._read_all(shop)
        with self._opened() as opened:
            undo(MIGRATION, Pair(opened, None), ORDER)
        self._sells.set()
        self.hour.migrations += 1

    def _rehearse(self) -> None:
        assert FAILOVER.rehearse is not None
        with self._opened() as opened:
            FAILOVER.rehearse(opened, FAILOVER.order(), SILENT)
        self.hour.rehearsals += 1

    def look(self) -> None:
        """Look at everything, every ten seconds."""
        while not self.ended.wait(LOOK_SECONDS):
            self._sample(at_rest=False)

    def finish(self) -> None:
        """Copy the rest, look once more, and see that nothing is missing. Raises RuntimeError."""
        with self._opened() as opened:
            order = WindowOrder("last", slots=lambda _: 1)
            result = run_window(opened.flow, opened.ledger, prepare(opened).topics, in_threads, order)
        self._rest()  # of the window that was ended some records may not have been judged, and what is not judged stays
        self.hour.copied = {topic: _count(self._target, f"all.{topic}") for topic in RATES}
        with _member(self._source, SHOP, MOVES) as shop:
            self._read_all(shop)
        if not result.is_verified or self.hour.copied != self.hour.produced:
            raise RuntimeError(f"{self.hour.produced} were produced, {self.hour.copied} can be read: {result}")

    def _read(self, shop: Consumer) -> None:
        for message in shop.consume(1000, 0.1):
            value = message.value()
            if message.error() is None and isinstance(value, bytes):
                self._seen[int(value)] = 1

    def _read_all(self, shop: Consumer) -> None:
        """Read on until the shop has seen every record. Raises RuntimeError where that takes more than two minutes."""
        most, until = self.hour.produced[MOVES], time.monotonic() + 120
        while left := self._seen.count(0, 0, most):
            if time.monotonic() > until:
                raise RuntimeError(f"the shop has not seen {left} of {most} records")
            self._read(shop)

    def _sample(self, *, at_rest: bool) -> None:
        gc.collect()
        process = psutil.Process()
        lag = max(0.0, time.time() - self._newest)
        held = process.memory_info().rss, process.num_fds(), threading.active_count()
        self.hour.samples.append(Sample(self._minutes, *held, lag, self._rows(), at_rest))

    def _rows(self) -> int:
        if not self._ledger.exists():
            return 0
        with closing(sqlite3.connect(f"file:{self._ledger}?mode=ro", uri=True)) as ledger:
            found = "select name from sqlite_master where type = 'table' and name <> 'samples'"
            tables = ledger.execute(found).fetchall()
            return sum(ledger.execute(f'select count(*) from "{name}"').fetchone()[0] for (name,) in tables)

    def _opened(self) -> AbstractContextManager[Opened]:
        return open_flow(self._directory / "all.properties", FLOW, f"sqlite:///{self._ledger}")

    @property
    def _ledger(self) -> Path:
        return self._directory / "all.db"

    @property
    def _window(self) -> str:
        return f"w{self.hour.windows}"

    @property
    def _minutes(self) -> float:
        return (time.monotonic() - self._begun) / 60


@contextmanager
def _member(bootstrap: str, group: str, topic: str) -> Iterator[Consumer]:
    """A member of the group, which commits every second and when it leaves."""
    with closing_consumer(
        bootstrap, group, COMMITTED | {"enable.auto.commit": True, "auto.commit.interval.ms": 1000}
    ) as consumer:
        consumer.subscribe([topic])
        yield consumer


def _count(bootstrap: str, topic: str) -> int:
    """The records of a topic that can be read."""
    found, ends = 0, set[int]()
    with closing_consumer(bootstrap, "count", COMMITTED | {"enable.partition.eof": True}) as consumer:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        while len(ends) < PARTITIONS:
            for message in consumer.consume(10_000, 1.0):
                if (error := message.error()) is None:
                    found += 1
                elif error.name() == "_PARTITION_EOF":
                    ends.add(message.partition() or 0)
    return found


def draw(hour: Hour, path: Path) -> None:
    """Memory, descriptors and threads, lag, and rows of the ledger, over the minutes."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, ((memory, counts), (lags, rows)) = pyplot.subplots(2, 2, figsize=(10, 6), layout="constrained")
    at = [each.minutes for each in hour.samples]
    memory.plot(at, [each.resident / 1e6 for each in hour.samples])
    counts.plot(at, [each.descriptors for each in hour.samples], label="descriptors")
    counts.plot(at, [each.threads for each in hour.samples], label="threads")
    counts.legend()
    lags.plot(at, [each.lag for each in hour.samples])
    rows.plot(at, [each.rows for each in hour.samples])
    rests = [each for each in hour.samples if each.at_rest]
    rows.plot([each.minutes for each in rests], [each.rows for each in rests], "o", label="after maintenance")
    rows.legend()
    for axes, name in (
        (memory, "resident MB"),
        (counts, "number"),
        (lags, "lag, seconds"),
        (rows, "rows of the ledger"),
    ):
        axes.set(xlabel="minutes", ylabel=name, ylim=(0, None), xlim=(0, None))
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)

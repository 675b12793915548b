"""``airmirror demo --take-over``: a real MirrorMaker 2, taken over from under load, handed back to, and again; proof."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, RenderableType

from airmirror.cli.plans import show_document
from airmirror.cli.tables import Cell, table
from airmirror.clusters.admin.client import connect
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import counted
from airmirror.evidence.asking import ComparisonRequest
from airmirror.evidence.found import Difference, Kind
from airmirror.evidence.mirrors import compare_clusters
from airmirror.evidence.rows import ComparedLogs
from airmirror.flows.gates import expectations_of
from airmirror.flows.prepare import Opened, open_flow, prepare
from airmirror.partitions import TopicPartition
from airmirror.runbooks.takeover.copies import Continued, await_stopped, take_over_copies
from airmirror.runbooks.takeover.handback import positions
from airmirror.runbooks.takeover.handback_check import HandbackVerdict, check_handback
from airmirror.runbooks.takeover.plan import TakeoverPlan, takeover_plan
from airmirror.runbooks.takeover.shown import shown_plan
from airmirror.windows.window import WindowOrder
from airmirror_local.brokers import Broker
from airmirror_local.demo.frame import Step, prove, start_clusters, steps
from airmirror_local.mirrormaker import start_mirrormaker
from airmirror_local.processes import Process, ProcessFailed
from airmirror_local.records import TABLES, create_topics, keep_producing, load
from airmirror_local.spark_connect import start_connect_server
from airmirror_local.stack import FLOW

SHARE = 0.9  # of the records that are there before; the others arrive
COPIED_SECONDS, POLL_SECONDS = 300.0, 0.5
MORE = 2_000  # records that MirrorMaker 2 copies before it is killed, or taken over from
CONFIGURATION = """
# One file for both: MirrorMaker 2 is started with it, and Airmirror reads it as it is.
clusters = east, west
east.bootstrap.servers = {east}
west.bootstrap.servers = {west}
east->west.enabled = true
east->west.topics = {topics}
west->east.emit.heartbeats.enabled = false
emit.heartbeats.enabled = false
tasks.max = 2
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
"""


@dataclass
class TakeoverRun:
    """What happened: the plan of a MirrorMaker 2 that ran, both take-overs, windows, and the comparison at the end."""

    plan: TakeoverPlan | None = None
    taken: list[list[Continued]] = field(default_factory=list)
    windows: int = 0
    copied: int = 0
    handed_back: int = 0
    resumed: int = 0  # partitions in which MirrorMaker 2's first record was the very next one
    produced: Mapping[str, int] = field(default_factory=dict)
    compared: Sequence[ComparedLogs] = ()
    ours: Mapping[TopicPartition, Sequence[tuple[int, int]]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def run_takeover_demo(console: Console, seconds: int) -> int:
    """The exit status: 0 when every record that was produced is on the target. Leaves nothing running."""
    return prove(
        console,
        lambda directory: _run(console, directory, seconds),
        lambda course: [_table(course), *summary(course)],
        doubts,
    )


def _run(console: Console, directory: Path, seconds: int) -> TakeoverRun:
    step, course = steps(console), TakeoverRun()
    with ExitStack() as stack:
        east, west = start_clusters(stack, step, directory)
        with step("loading real records into east"):
            create_topics(east.bootstrap)
            loaded = load(east.bootstrap, share=SHARE)
        with step("starting Spark Connect"):
            spark = start_connect_server(directory / "spark")
        stack.callback(spark.process.kill)
        file = _configuration(directory, east, west)
        opened = stack.enter_context(open_flow(file, FLOW, f"sqlite:///{directory / 'ledger.db'}"))
        mirrormaker = _MirrorMaker(file, directory, opened)
        stack.callback(mirrormaker.kill)
        with keep_producing(east.bootstrap, share=SHARE) as arrivals:
            _there_and_back(console, step, opened, mirrormaker, course, spark.url, seconds)
        with step("a last window copies what is left"):
            _windows(opened, spark.url, course, 0)
        course.produced = {topic: count + arrivals.sent.get(topic, 0) for topic, count in loaded.items()}
        with step("comparing both clusters, record by record, whoever copied them"):
            asked = ComparisonRequest(topics=tuple(course.produced), rename="east.{topic}")
            course.compared = compare_clusters(opened.flow.source, opened.flow.target, asked)
            course.ours = _ours(opened)
    return course


def _there_and_back(
    console: Console,
    step: Step,
    opened: Opened,
    mirrormaker: _MirrorMaker,
    course: TakeoverRun,
    spark: str,
    seconds: int,
) -> None:
    """Two take-overs and a hand-back, while records arrive."""
    with step("MirrorMaker 2 starts, and copies"), mirrormaker.copying(MORE):
        pass
    with step("it is killed in mid-stream, and started again"):
        mirrormaker.kill()
        with mirrormaker.copying(MORE):
            course.plan = takeover_plan(opened)
            mirrormaker.kill()
    show_document(shown_plan(course.plan))
    with step("it is killed: airmirror takeover waits until it is gone"):
        _take_over(opened, course)
    with step(f"windows copy and verify what arrives, for {seconds} s"):
        _windows(opened, spark, course, seconds)
    with step("handed back: MirrorMaker 2 copies what arrives"):
        course.handed_back = len(positions(opened))
        with mirrormaker.copying(MORE):
            checked = check_handback(opened, COPIED_SECONDS)
            mirrormaker.kill()
    course.resumed = sum(row.verdict is HandbackVerdict.RESUMED for row in checked.partitions)
    if not checked.has_resumed:
        course.wrong += [f"{row.key}: after the hand-back: {row.verdict}" for row in checked.partitions]
    with step("it is killed, and taken over again"):
        _take_over(opened, course)


def _configuration(directory: Path, east: Broker, west: Broker) -> Path:
    file = directory / "mirror.properties"
    topics = ", ".join(each.name for each in TABLES)
    file.write_text(CONFIGURATION.format(east=east.bootstrap, west=west.bootstrap, topics=topics))
    return file


def _take_over(opened: Opened, course: TakeoverRun) -> None:
    await_stopped(opened, COPIED_SECONDS)
    rows = take_over_copies(opened, "demo", f"takeover-{len(course.taken) + 1}")
    course.wrong += [str(row.error) for row in rows if row.error is not None]
    course.taken.append(rows)


def _windows(opened: Opened, spark: str, course: TakeoverRun, seconds: float) -> None:
    """At least one window, and others until the time is up."""
    from airmirror.on_spark.windows import run_judged

    by, until = expectations_of(None, wanted=False), time.monotonic() + seconds
    while True:
        result = run_judged(prepare(opened), spark, WindowOrder(f"window-{uuid.uuid4().hex[:8]}"), by).result
        course.windows += 1
        course.copied += result.copied
        course.wrong += [str(row.error) for row in result.rows if row.error is not None]
        if not result.is_verified:
            course.wrong.append(f"{result.window} is not verified")
        if time.monotonic() >= until:
            return


class _MirrorMaker:
    """A real MirrorMaker 2, started and killed again and again."""

    def __init__(self, file: Path, directory: Path, opened: Opened) -> None:
        self._file, self._directory, self._opened = file, directory, opened
        self._process: Process | None = None

    def kill(self) -> None:
        """End it with SIGKILL; it may be gone."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    @contextmanager
    def copying(self, more: int) -> Iterator[None]:
        """It runs, and has copied ``more`` records since it was started. Raises ProcessFailed, TimeoutError."""
        before, until = self._records(), time.monotonic() + COPIED_SECONDS
        self._process = process = start_mirrormaker(self._file, self._directory)
        while self._records() < before + more:
            if not process.running:
                raise ProcessFailed(process.name, "ended", process.log, process.log_tail())
            if time.monotonic() > until:
                raise TimeoutError(f"MirrorMaker 2 has copied less than {more} records in {COPIED_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)  # the sampling interval: nothing tells what it has copied
        yield

    def _records(self) -> int:
        """The offsets of all remote topics."""
        target = self._opened.flow.target
        remote = {f"{self._opened.flow.source.alias}.{each.name}" for each in TABLES}
        there = remote & set(connect(target).topic_names())
        with Routes(target, "airmirror|demo") as routes:
            routes.refresh(there)
            return sum(offsets_with_patience(routes, routes.keys(there), LATEST).values())


def _ours(opened: Opened) -> dict[TopicPartition, list[tuple[int, int]]]:
    """The target offsets that windows have written, by partition of the source."""
    found: dict[TopicPartition, list[tuple[int, int]]] = {}
    for key in opened.ledger.last_mappings():
        its = [record for record in opened.ledger.mappings(*key) if record.window.startswith("window-")]
        ranges = [(run.target_first, run.target_end) for record in its for run in record.ranges]
        found[TopicPartition(*key)] = ranges
    return found


def doubts(course: TakeoverRun) -> Iterator[str]:
    """Yield the reasons why nothing is proven: each record that was produced is on the target, and twice only where
    MirrorMaker 2 was killed."""
    yield from course.wrong
    if len(course.taken) != 2 or not course.handed_back or not course.copied:
        yield f"{len(course.taken)} take-overs, {course.handed_back} partitions handed back, {course.copied} records copied"
    for topic, count in course.produced.items():
        equal = sum(row.counts.get(Kind.EQUAL, 0) for row in course.compared if row.topic == topic)
        if equal != count:
            yield f"{topic}: {count:,} records were produced, {equal:,} are on the target in order"
    for row in course.compared:
        where = f"{row.topic}-{row.partition}"
        if row.error is not None:
            yield f"{where}: {row.error}"
        yield from (
            f"{where}: {counted(number, 'record')}: {kind}"
            for kind, number in row.counts.items()
            if number and kind not in (Kind.EQUAL, Kind.TWICE)
        )
        ours = course.ours.get(TopicPartition(row.topic, row.partition), ())
        for each in _twice(row):
            if any(first < each.target_offset + each.count and each.target_offset < end for first, end in ours):
                yield f"{where}: a window copied target offset {each.target_offset} twice"


def _twice(row: ComparedLogs) -> list[Difference]:
    return [each for each in row.differences if each.kind is Kind.TWICE]


def _shown(course: TakeoverRun) -> list[RenderableType]:
    return [_table(course), *summary(course)]


def _table(course: TakeoverRun) -> RenderableType:
    columns = ("topic", ">produced", ">on the target, in order", ">copied twice by MirrorMaker 2")
    cells: list[list[Cell]] = []
    for topic, count in course.produced.items():
        rows = [row for row in course.compared if row.topic == topic]
        cells.append(
            [topic, count, *(sum(row.counts.get(kind, 0) for row in rows) for kind in (Kind.EQUAL, Kind.TWICE))]
        )
    return table(f"{FLOW}: both clusters, read again", columns, cells)


def summary(course: TakeoverRun) -> Iterator[str]:
    """Yield what was done, and each run of records that MirrorMaker 2 has copied twice."""
    recognised = sum(row.copied for rows in course.taken for row in rows)
    yield (
        f"{counted(course.windows, 'window')} copied {course.copied:,} records and verified them. Taken over twice: "
        f"{recognised:,} records of MirrorMaker 2's that no progress or mapping told of were recognised, and not copied again. "
        f"Handed back once, in {counted(course.handed_back, 'partition')}: MirrorMaker 2's first record was the very next one in "
        f"{course.resumed}, and the others had none to copy. Everything is stopped."
    )
    twice = [(row, each) for row in course.compared for each in _twice(row)]
    for row, each in twice:
        offsets = f"{each.target_offset} to {each.target_offset + each.count - 1}"
        yield f"copied twice by MirrorMaker 2: {row.remote_topic}-{row.partition}, offsets {offsets}"

"""A flow between the test clusters, run in this process: an alias of its own, so that its internal topics are fresh."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import javaproperties

from airmirror.clusters.admin.appender import Appender
from airmirror.config import Flow, parse
from airmirror.flows.prepare import Opened, prepare
from airmirror.ledger import Ledger
from airmirror.slot.attempts import run_slot
from airmirror.slot.contract import Slot, SlotResult
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.sync import apply, look
from airmirror.windows.demand import at_most, slots_for
from airmirror.windows.following import Follow
from airmirror.windows.results import WindowResult
from airmirror.windows.window import Execute, WindowOrder, run_window
from airmirror.wire.mirrormaker import murmur2_partition, source_offset_key, source_offset_value
from support.topics import Cluster, assert_mirrored, bootstrap, create_topic, produce, read_all


def in_this_process(slots: Sequence[Slot]) -> list[SlotResult]:
    """Runs slots one after the other, without Spark."""
    return [result for slot in slots for result in run_slot(slot)]


def at_once(slots: Sequence[Slot]) -> list[SlotResult]:
    """Runs slots beside each other, without Spark."""
    with ThreadPoolExecutor(len(slots), "slot") as pool:
        return [result for results in pool.map(run_slot, slots) for result in results]


@dataclass(frozen=True)
class Mirror:
    """A flow of one topic, its clusters and its ledger."""

    source: Cluster
    target: Cluster
    topic: str
    opened: Opened

    @property
    def flow(self) -> Flow:
        return self.opened.flow

    @property
    def remote_topic(self) -> str:
        return f"{self.flow.source.alias}.{self.topic}"

    def run(
        self,
        execute: Execute = in_this_process,
        window: str | None = None,
        slots: int = 2,
        following: Follow | None = None,
    ) -> WindowResult:
        """Run one window."""
        prepared = prepare(self.opened)
        return run_window(
            self.flow,
            self.opened.ledger,
            prepared.topics,
            execute,
            WindowOrder(
                window or uuid.uuid4().hex[:8],
                slots=lambda demand: slots_for(demand, self.flow.window, at_most(slots)),
                following=following,
            ),
        )

    def assert_equal(self, isolation: str = "read_committed") -> int:
        """Every record is on both sides exactly once, equal, in order; how many."""
        return assert_mirrored(self.source, self.topic, self.target, self.remote_topic, isolation)  # type: ignore[arg-type]


def mirror(
    source: Cluster,
    target: Cluster,
    directory: Path,
    *,
    partitions: int = 1,
    topic: str | None = None,
    config: dict[str, str] | None = None,
    settings: dict[str, str] | None = None,
    through: str | None = None,
    ledger_url: str | None = None,
    replicas: int = 1,
    access: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> Mirror:
    """A flow for ``topic``, or for a new one on ``source``. ``through``: the target's address as the flow has it (a proxy's).

    ``access``: client settings of source and target, by Java's names.
    """
    alias = f"s{uuid.uuid4().hex[:8]}"
    topic = topic or create_topic(source, f"orders-{alias}", partitions, config, replicas)
    lines = {
        "clusters": f"{alias}, west",
        f"{alias}.bootstrap.servers": bootstrap(source),
        "west.bootstrap.servers": through or bootstrap(target),
        f"{alias}->west.enabled": "true",
        f"{alias}->west.topics": topic,
        "replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "window.slot.bytes": "1",  # as many slots as are allowed, however few the records
        "offset.storage.partitions": "3",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
    } | {f"{alias}->west.{key}": value for key, value in (settings or {}).items()}
    for cluster, its in zip((alias, "west"), access, strict=True):
        lines |= {f"{cluster}.{key}": value for key, value in its.items()}
    configuration = parse(javaproperties.dumps(lines, timestamp=None), "test")
    flow = configuration.flow(f"{alias}->west")
    if ledger_url is None:
        file = directory / f"{alias}.db"
        file.write_bytes(_new_ledger())
        ledger_url = f"sqlite:///{file}"
    return Mirror(source, target, topic, Opened(configuration, flow, Ledger(ledger_url).flow(flow.name)))


@cache
def _new_ledger() -> bytes:
    """The file of a ledger that was just made: that took 1 % of all tests."""
    with TemporaryDirectory() as directory:
        file = Path(directory, "new.db")
        Ledger(f"sqlite:///{file}").close()
        return file.read_bytes()


def as_mirrormaker(flow: Mirror, copied: int, progress: int) -> None:
    """What MirrorMaker 2 leaves: the first ``copied`` records on the target, and a progress of ``progress``."""
    apply(flow.flow, look(flow.flow))
    ensure_internal_topics(flow.flow)
    produce(flow.target, flow.remote_topic, read_all(flow.source, flow.topic)[0][:copied], partition=0)
    key = source_offset_key(flow.flow.source.alias, flow.topic, 0)
    topic = f"mm2-offsets.{flow.flow.source.alias}.internal"
    with Appender(flow.flow.target, topic, murmur2_partition(key, 3)) as appender:
        appender.append([(key, source_offset_value(progress))])


def a_flow(source: str, servers: str = "one:9092") -> Flow:
    """``<source>->west`` of clusters that nobody asks."""
    text = f"clusters = {source}, west\n{source}.bootstrap.servers = {servers}\nwest.bootstrap.servers = two:9092\n"
    return parse(f"{text}{source}->west.enabled = true\n", "test").flow(f"{source}->west")

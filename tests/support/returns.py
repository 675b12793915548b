"""Two clusters with a flow and its reverse flow, for what returns: applications, windows of both, and what lies on either
side."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import javaproperties

from airmirror.config import parse
from airmirror.flows.measure import measure_window
from airmirror.flows.post_window import CHECKPOINTS, do_task
from airmirror.flows.prepare import Opened, caught_up, prepare
from airmirror.ledger import GroupOffset, Ledger
from airmirror.naming import DefaultReplicationPolicy
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.outcome import FailbackOutcome, outcome_of
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.failback.runbook import FAILBACK
from airmirror.runbooks.run import run
from airmirror.topics.names import select
from airmirror.windows.continuing import Continuation
from airmirror.windows.results import WindowResult
from airmirror.windows.window import WindowOrder, run_window
from airmirror_local.brokers import Broker
from support.flows import in_this_process
from support.topics import Record, create_topic, produce, read_all

ORDER = FailbackOrder(reason="east is back, INC-7", by="ada", wait=30.0)
FORWARD, REVERSE = "east->west", "west->east"


class Suffixed(DefaultReplicationPolicy):
    """``orders`` of cluster ``east`` is ``orders-from-east``: a policy of one's own."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}-from-{source_alias}"

    def topic_source(self, topic: str) -> str | None:
        return topic.rpartition("-from-")[2] if "-from-" in topic else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition("-from-")[0] if "-from-" in topic else None


POLICIES = {
    "default": "DefaultReplicationPolicy",
    "identity": "IdentityReplicationPolicy",
    "own": "support.returns:Suffixed",
}


@dataclass(frozen=True)
class Done:
    """Where partitions began to return, what became of groups, what was accounted for, and the seconds that it took."""

    begun: list[Continuation]
    groups: list[GroupOffset]
    continued: list[Continuation]
    seconds: float


@dataclass(frozen=True)
class Both:
    """One topic of ``east``, its remote topic on ``west``, and the flows between them."""

    east: Broker
    west: Broker
    topic: str
    remote: str
    group: str
    forward: Opened
    reverse: Opened

    @property
    def pair(self) -> Pair:
        return Pair(self.forward, self.reverse)

    def window(self, opened: Opened, *, window: str = "") -> WindowResult:
        """One window, as ``airmirror run-window`` runs it, and the checkpoints of groups."""
        prepared = prepare(opened)
        result = run_window(
            prepared.opened.flow,
            opened.ledger,
            prepared.topics,
            in_this_process,
            WindowOrder(window or uuid.uuid4().hex[:8], slots=lambda _: 2),
        )
        measure_window(prepared.opened, result, lambda key: True)
        do_task(opened, CHECKPOINTS, "checkpoints")
        return result

    def fail_back(self, **order: object) -> Done:
        """All steps, whatever is over by now."""
        names = [step.name for step in FAILBACK.steps if not step.apart]
        ran = run(FAILBACK, self.pair, replace(ORDER, **order), names)  # type: ignore[arg-type]
        return Done(ran.gave["return"], ran.gave["move_groups"], ran.gave["unfreeze"], ran.seconds)

    def outcome(self, order: FailbackOrder, done: Done) -> FailbackOutcome:
        return outcome_of(self.pair, order, done.groups, done.seconds)

    def elsewhere(self, directory: Path) -> Both:
        """The same of another deployment, whose ledger has seen nothing."""
        ledger = Ledger(f"sqlite:///{directory}/{uuid.uuid4().hex}.db")
        forward, reverse = (replace(each, ledger=ledger.flow(each.flow.name)) for each in (self.forward, self.reverse))
        return replace(self, forward=forward, reverse=reverse)

    def now(self, opened: Opened) -> Opened:
        return caught_up(opened)

    def values(self, cluster: Broker) -> dict[int, list[bytes | None]]:
        """The values of the topic on ``east``, or of the remote topic on ``west``, in the order of each log."""
        topic = self.topic if cluster is self.east else self.remote
        return {number: [each.value for each in its] for number, its in read_all(cluster, topic).items()}

    def records(self, cluster: Broker) -> dict[int, list[Record]]:
        return read_all(cluster, self.topic if cluster is self.east else self.remote)


def forward_and_reverse(
    east: Broker,
    west: Broker,
    directory: Path,
    *,
    partitions: int = 2,
    policy: str = "default",
    settings: Mapping[str, str] | None = None,
    topic: str = "",
) -> Both:
    """A flow and its reverse flow, for a new topic on ``east``; the latter replicates nothing of its own accord."""
    topic = topic or create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", partitions)
    group = f"g-{uuid.uuid4().hex[:8]}"
    lines = properties((east.bootstrap, west.bootstrap), topic, group, policy) | dict(settings or {})
    configuration = parse(javaproperties.dumps(lines, timestamp=None), "test")
    ledger = Ledger(f"sqlite:///{directory}/{uuid.uuid4().hex}.db")
    forward, reverse = (
        Opened(configuration, configuration.flow(name), ledger.flow(name)) for name in (FORWARD, REVERSE)
    )
    return Both(east, west, topic, select(forward.flow, [topic])[topic], group, forward, reverse)


def properties(servers: tuple[str, str], topics: str, groups: str, policy: str = "default") -> dict[str, str]:
    """The configuration of a flow and its reverse flow between clusters at these addresses."""
    east, west = servers
    return {
        "clusters": "east, west",
        "east.bootstrap.servers": east,
        "west.bootstrap.servers": west,
        f"{FORWARD}.enabled": "true",
        f"{FORWARD}.topics": topics,
        f"{REVERSE}.enabled": "true",
        f"{REVERSE}.topics": "nothing-of-its-own",
        "groups": groups,
        "replication.policy.class": POLICIES[policy],
        "failover.quiet.ms": "0",
        "emit.checkpoints.interval.seconds": "0",
        "replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "offset.storage.partitions": "3",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "window.slot.bytes": "1",
    }


def write(cluster: Broker, topic: str, first: int, count: int, partitions: int = 2) -> list[bytes]:
    """Produce ``count`` records, numbered from ``first`` on, to the partitions in turn; their values."""
    numbers = range(first, first + count)
    made = [Record(b"v%d" % number, b"k%d" % number, timestamp=1_700_000_000_000 + number) for number in numbers]
    for partition in range(partitions):
        produce(cluster, topic, made[partition::partitions], partition=partition)
    return [each.value or b"" for each in made]

"""The shop of the demos: its topics, producers and consumer groups, and what of its records lies on a cluster."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from airmirror.clusters.protocol.log import read_records
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster
from airmirror.flows.post_window import CHECKPOINTS, do_task
from airmirror.flows.prepare import Opened
from airmirror.runbooks.draining import prove_past
from airmirror.runbooks.stillness import ends_of
from airmirror_local.shop import App, Kind, Protocol, start_consumer, start_producer

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

WINDOW_SECONDS = 300.0  # for windows that prove what was there when they began
POLL_SECONDS = 0.2  # the sampling interval: files tell nobody that they grew
Values = Mapping[tuple[str, int], Sequence[str]]  # of records, in order, by topic and partition


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

    def await_read(self, values: Sequence[str], seconds: float) -> None:
        """Wait until each group has read those of these records that it reads. Raises TimeoutError."""
        until = time.monotonic() + seconds
        for group, (_, topics) in GROUPS.items():
            wanted = {value for value in values if topic_of(value) in topics}
            while left := wanted - set(self.read_by(group)):
                if time.monotonic() > until:
                    raise TimeoutError(f"group {group} has not read {len(left)} records in {seconds:.0f} s")
                time.sleep(POLL_SECONDS)


def windows(opened: Opened, seconds: float) -> None:
    """Windows of the shop's topics (of a reverse flow: of what returns) and checkpoints, until the time is up; at least one
    each."""
    until = time.monotonic() + seconds
    while True:
        with Routes(opened.flow.source, "airmirror|demo") as source:
            ends = ends_of(source, set(opened.flow.returns or TOPICS))
        prove_past(opened, ends, WINDOW_SECONDS)
        do_task(opened, CHECKPOINTS, "checkpoints")
        if time.monotonic() >= until:
            return


def topic_of(value: str) -> str:
    """The topic that a record was written to, from its value: a producer takes its topics in turn."""
    name, _, number = value.rpartition("-")
    topics = PRODUCERS[name.partition(".")[0]][1]
    return topics[int(number) % len(topics)]


def values_of(cluster: Cluster, topics: Collection[str]) -> dict[tuple[str, int], list[str]]:
    """The values of all committed records of topics, in order, by topic and partition."""
    with Routes(cluster, "airmirror|demo") as routes:
        return {
            key: [(each.value or b"").decode() for each in read_records(routes, key, 0, end, read_committed=True)]
            for key, end in ends_of(routes, topics).items()
        }


def differences(wanted: Sequence[str], found: Sequence[str]) -> Iterator[str]:
    """Yield how records that were found differ from those that should be there, each once."""
    more, less = Counter(found) - Counter(wanted), Counter(wanted) - Counter(found)
    if less:
        yield f"{less.total():,} records are missing, the first is {next(iter(less))}"
    if more:
        yield f"{more.total():,} records are there twice, or of nobody, the first is {next(iter(more))}"


def disorder(logs: Values) -> Iterator[str]:
    """Yield where a log has a producer's records in another order than they were written in."""
    for (topic, partition), values in logs.items():
        last: dict[str, int] = {}
        for value in values:
            name, _, number = value.rpartition("-")
            if int(number) <= last.get(name, 0):
                yield f"{topic}-{partition}: {value} lies after {name}-{last[name]}"
            last[name] = int(number)

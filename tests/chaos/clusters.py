"""The two clusters of the chaos test: one node behind a proxy, and three nodes with proxies between them.

They are used by one seed after the other.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from airmirror_local.brokers import IMPATIENT, Broker, BrokerCluster, start_broker, start_cluster
from airmirror_local.jars import KAFKA_VERSION
from airmirror_local.ports import free_port
from airmirror_local.processes import Process
from airmirror_local.proxy import Exchange, Proxy, forward, pass_on, start_proxy
from airmirror_local.spark_connect import ConnectServer, start_connect_server
from support.acls import AUTHORIZER
from support.topics import await_nodes

FRAGILE_NODE = 2  # of the three: a fragile remote topic lies on it alone
QUICK = IMPATIENT | {
    "replica.lag.time.max.ms": "3000",  # how long a node that is cut off counts as one in sync
    "producer.id.expiration.check.interval.ms": "500",  # producers are forgotten for a second or two
}
NODE = re.compile(
    rb"(?:^|-)(\d+)(?:-|$)"
)  # in what a node calls itself to another: 1, broker-1-fetcher-0, raft-client-1


@dataclass(frozen=True)
class Single:
    """A cluster of one node, and the proxy before it."""

    broker: Broker
    proxy: Proxy


@dataclass
class Clusters:
    """``old`` knows the first protocol of transactions only, and is started when it is asked for.

    ``locks``: a cluster has one fault of its nodes at a time, else three nodes are no cluster any more.
    """

    directory: Path
    one: Single
    three: BrokerCluster
    stack: ExitStack
    between: dict[int, list[Proxy]] = field(default_factory=dict)  # before each of the three nodes, for the two others
    old: Single | None = None
    spark: ConnectServer | None = None
    locks: dict[str, threading.Lock] = field(
        default_factory=lambda: {"one": threading.Lock(), "three": threading.Lock(), "spark": threading.Lock()}
    )

    def single(self, first_protocol: bool) -> Single:
        """The cluster of one node; one that knows the first protocol only."""
        if not first_protocol:
            return self.one
        if self.old is None:
            self.old = _start_single(self.stack, self.directory, "old", {"transaction.version": 0})
        return self.old

    @property
    def singles(self) -> tuple[Single, ...]:
        return tuple(filter(None, (self.one, self.old)))

    @property
    def nodes(self) -> tuple[Broker, ...]:
        return (*(single.broker for single in self.singles), *self.three.brokers)

    @property
    def processes(self) -> tuple[Process, ...]:
        """What runs now: faults have started some of it again."""
        spark = (self.spark.process,) if self.spark else ()
        return (*(node.process for node in self.nodes), *spark)

    def spark_url(self) -> str:
        """The Spark Connect server, started when it is first asked for."""
        if self.spark is None:
            self.spark = start_connect_server(self.directory / "spark")
        return self.spark.url

    def restart_spark(self) -> None:
        """Kill the server, and start it again at its port."""
        if self.spark is not None:
            self.spark.process.kill()
            self.spark = start_connect_server(self.directory / "spark", port=self.spark.port)

    @contextmanager
    def isolated(self, node: int) -> Iterator[Callable[[], int]]:
        """A node and the others do not reach each other, while clients reach them all; how many requests were cut off so far."""
        rules = []
        for number, proxies in self.between.items():
            for proxy in proxies:
                rule = Without(node, number)
                rules.append(rule)
                proxy.on_request = rule
                proxy.cut()
        try:
            yield lambda: sum(rule.refused for rule in rules)
        finally:
            for proxies in self.between.values():
                for proxy in proxies:
                    proxy.on_request = pass_on

    def heal(self) -> None:
        """Every node up and known to the others, every connection passed on."""
        for single in self.singles:
            single.proxy.on_request = single.proxy.on_answer = pass_on
        for node in self.nodes:
            if not node.process.running:
                node.restart()
            else:
                node.resume()
        for single in self.singles:
            await_nodes(single.broker, 1)
        await_nodes(self.three, len(self.three.brokers))


@dataclass
class Without:
    """The rule of a proxy before node ``here``: it cuts connections between ``node`` and any other one, and counts them."""

    node: int
    here: int
    refused: int = 0

    def __call__(self, _: Exchange, frame: bytes) -> bytes | None:
        length = int.from_bytes(frame[8:10], "big", signed=True)
        sender = NODE.search(frame[10 : 10 + max(length, 0)])
        assert sender is not None, frame[:100]
        if (int(sender[1]) == self.node) == (self.here == self.node):
            return frame
        self.refused += 1
        return None


@contextmanager
def start_clusters(
    directory: Path, nodes: int = 3, *, version: str = KAFKA_VERSION, features: Mapping[str, int] | None = None
) -> Iterator[Clusters]:
    """Both clusters, ended with the block. ``nodes``: of the larger one; a plan that does nothing to them needs one.

    ``version``, ``features``: the larger one's, at the beginning.
    """
    with ExitStack() as stack:
        between: dict[int, list[Proxy]] = {}

        def before(node: int, told: int, own: int) -> None:
            between.setdefault(node, []).append(stack.enter_context(forward(told, own)))

        three = start_cluster(
            directory,
            "three",
            nodes,
            QUICK,
            features=features,
            version=version,
            between=before if nodes > 1 else None,
        )
        stack.callback(three.stop)
        one = _start_single(stack, directory, "one", {})
        clusters = Clusters(directory, one, three, stack, between)
        stack.callback(lambda: clusters.spark and clusters.spark.process.kill())
        yield clusters


def _start_single(stack: ExitStack, directory: Path, name: str, features: Mapping[str, int]) -> Single:
    broker = start_broker(
        directory, name, QUICK | AUTHORIZER, proxy_port=free_port(), **({"features": features} if features else {})
    )
    stack.callback(broker.kill)
    return Single(broker, stack.enter_context(start_proxy(broker)))

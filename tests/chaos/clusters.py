"""The two clusters of the chaos test: one node behind a proxy, and three nodes. They are used by one seed after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from airmirror_local.brokers import IMPATIENT, Broker, BrokerCluster, start_broker, start_cluster
from airmirror_local.ports import free_port
from airmirror_local.processes import Process
from airmirror_local.proxy import Proxy, pass_on, start_proxy
from airmirror_local.spark_connect import ConnectServer, start_connect_server
from support.acls import AUTHORIZER
from support.topics import await_nodes


@dataclass
class Clusters:
    """``locks``: a cluster has one fault of its nodes at a time, else three nodes are no cluster any more."""

    directory: Path
    one: Broker
    three: BrokerCluster
    proxy: Proxy
    spark: ConnectServer | None = None
    locks: dict[str, threading.Lock] = field(
        default_factory=lambda: {"one": threading.Lock(), "three": threading.Lock(), "spark": threading.Lock()}
    )

    @property
    def nodes(self) -> tuple[Broker, ...]:
        return (self.one, *self.three.brokers)

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
            url = self.spark.url
            self.spark.process.kill()
            self.spark = start_connect_server(self.directory / "spark", port=int(url.rpartition(":")[2]))

    def heal(self) -> None:
        """Every node up and known to the others, every connection passed on."""
        self.proxy.on_request = self.proxy.on_answer = pass_on
        for node in self.nodes:
            if not node.process.running:
                node.restart()
            else:
                node.resume()
        await_nodes(self.one, 1)
        await_nodes(self.three, 3)


@contextmanager
def start_clusters(directory: Path) -> Iterator[Clusters]:
    """Both clusters, ended with the block."""
    with ExitStack() as stack:
        one = start_broker(directory, "one", IMPATIENT | AUTHORIZER, proxy_port=free_port())
        stack.callback(one.kill)
        three = start_cluster(directory, "three", 3, IMPATIENT)
        stack.callback(three.stop)
        clusters = Clusters(directory, one, three, stack.enter_context(start_proxy(one)))
        stack.callback(lambda: clusters.spark and clusters.spark.process.kill())
        yield clusters

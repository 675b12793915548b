"""The ledger's numbers under the names of MirrorMaker 2's metrics, for dashboards and alerts that exist (docs/metrics.md).

``legacy``: as Strimzi's rules for Prometheus's JMX exporter, and its own reporter, name MirrorMaker 2's MBeans.
``new``: as that reporter names those of KIP-1280, MirrorMaker 2's only ones from Kafka 5.0 on. Nothing is asked of Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from airmirror.flows import measure
from airmirror.ledger import Ledger, PartitionMetrics
from airmirror.ledger.groups import CheckpointPlace
from airmirror.web.collector import filled_gauge

LEGACY, NEW = FORMATS = ("legacy", "new")  # metric.names.formats of KIP-1280
LEAST_SECONDS = 1.0  # that a rate is over
IDLE_SECONDS = 300.0  # nothing was verified for so long: the rate is 0

SOURCE, CHECKPOINT = "MirrorSourceConnector", "MirrorCheckpointConnector"
PARTITION = ("source", "target", "topic", "partition")
GROUP = ("source", "target", "group", "topic", "partition")

Value = float | None


@dataclass(frozen=True)
class MirrorMakerCollector(Collector):
    """The metrics of MirrorMaker 2 in ``formats``, of all flows; ``clock`` gives epoch seconds."""

    ledger: Ledger
    formats: Collection[str]
    clock: Callable[[], float] = time.time

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        partitions, now = self.ledger.partition_metrics(), self.clock()
        latencies = {
            row.flow: row.value for row in self.ledger.flow_metrics() if row.name == measure.CHECKPOINT_SECONDS
        }
        checkpoints = [place for place in self.ledger.checkpoint_places() if place.flow in latencies]
        for format_ in self.formats:
            yield from _of_partitions(partitions, now, format_)
            yield from _of_checkpoints(checkpoints, latencies, format_)
        if LEGACY in self.formats:
            yield from _of_workers(partitions)


def _of_partitions(rows: Sequence[PartitionMetrics], now: float, format_: str) -> Iterator[Metric]:
    found = [(row.flow, (row.remote_topic, row.partition)) for row in rows]
    labels, places = _labelled(format_, SOURCE, PARTITION, found)
    prefix = _prefix(format_, SOURCE)
    numbers: dict[str, Iterable[Value]] = {
        "record_count": (row.records for row in rows),
        "record_rate": (_rate(row, row.records, row.earlier_records, now) for row in rows),
        "byte_count": (row.bytes for row in rows),
        "byte_rate": (_rate(row, row.bytes, row.earlier_bytes, now) for row in rows),
    }
    for name, values in numbers.items():
        yield _family(f"{prefix}_{name}", labels, places, values)
    ages = {
        "record_age_ms": [(row.age_ms, row.age_most_ms) for row in rows],
        "replication_latency_ms": [
            (row.latency_ms if row.newest_ms >= 0 else None, row.latency_most_ms) for row in rows
        ],
    }
    for name, pairs in ages.items():
        for suffix, values in _spread(pairs).items():
            yield _family(f"{prefix}_{name}{suffix}", labels, places, values)


def _spread(pairs: Sequence[tuple[int | None, int | None]]) -> dict[str, Iterable[Value]]:
    """Return the values of the youngest record of a transaction, and the oldest: the last, smallest, largest, and mean one."""
    return {
        "": (least for least, _ in pairs),
        "_min": (least for least, _ in pairs),
        "_max": (most for _, most in pairs),
        "_avg": (None if least is None or most is None else (least + most) / 2 for least, most in pairs),
    }


def _of_checkpoints(rows: Sequence[CheckpointPlace], seconds: dict[str, float], format_: str) -> Iterator[Metric]:
    """Yield one time under four names: a single transaction writes the checkpoints of all groups."""
    found = [(row.flow, (row.group, row.topic, row.partition)) for row in rows]
    labels, places = _labelled(format_, CHECKPOINT, GROUP, found)
    for suffix in ("", "_min", "_max", "_avg"):
        name = f"{_prefix(format_, CHECKPOINT)}_checkpoint_latency_ms{suffix}"
        yield _family(name, labels, places, (seconds[row.flow] * 1000 for row in rows))


def _of_workers(rows: Sequence[PartitionMetrics]) -> Iterator[Metric]:
    """Yield what Strimzi's dashboards find a MirrorMaker 2 by, and its consumers' lags; topics are the source's."""
    flows = len({row.flow for row in rows})
    clients = [f"{row.flow}|{SOURCE}|replication-consumer" for row in rows]
    for exporter, client, quote in (("", "clientid", '"'), ("connect_", "client_id", "")):
        name = f"kafka_connect_{exporter}worker{'_metrics' if exporter else ''}_connector_count"
        yield GaugeMetricFamily(name, "Flows that the ledger knows.", value=flows)
        name = "consumer_fetch_manager_metrics" if exporter else "fetch_manager"
        places = [
            (f"{quote}{its}{quote}", row.topic, str(row.partition)) for its, row in zip(clients, rows, strict=True)
        ]
        labels = (client, "topic", "partition")
        yield _family(f"kafka_consumer_{name}_records_lag", labels, places, (row.lag_records for row in rows))


def _rate(row: PartitionMetrics, count: int, earlier: int | None, now: float) -> Value:
    """Return records, or bytes, a second since the counters were kept; 0 where nothing was verified for IDLE_SECONDS."""
    if earlier is None or row.earlier_ms is None:
        return None
    if now - row.verified_ms / 1000 > IDLE_SECONDS:
        return 0.0
    return (count - earlier) / max(LEAST_SECONDS, now - row.earlier_ms / 1000)


def _prefix(format_: str, connector: str) -> str:
    return "kafka_connect_plugins" if format_ == NEW else f"kafka_connect_mirror_{connector.lower()}"


def _labelled(
    format_: str, connector: str, names: Sequence[str], rows: Sequence[tuple[str, tuple[object, ...]]]
) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """The labels of a format, and their values for rows of a flow's name and what follows source and target."""
    places = [(*flow.split("->"), *map(str, rest)) for flow, rest in rows]
    if format_ == LEGACY:
        return names, places
    tasks = [(f"{flow}.{connector}", "0", *place) for (flow, _), place in zip(rows, places, strict=True)]
    return ("connector", "task", *names), tasks


def _family(name: str, labels: Sequence[str], places: Sequence[Sequence[str]], values: Iterable[Value]) -> Metric:
    text = "As MirrorMaker 2 has it; docs/metrics.md tells what differs."
    return filled_gauge(name, text, labels, zip(places, values, strict=True))

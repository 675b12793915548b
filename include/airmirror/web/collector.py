"""The ledger's numbers as Prometheus's metrics; docs/metrics.md lists them. Nothing is asked of Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from airmirror.flows import measure
from airmirror.ledger import FlowMetric, Ledger, PartitionMetrics

FLOW = ("flow", "source", "target")
PARTITION = (*FLOW, "topic", "partition")
LAG_EXPORTER = ("cluster_name", "group", "topic", "partition")


@dataclass(frozen=True)
class LedgerCollector(Collector):
    """What a ledger holds now, as metric families; ``clock`` gives epoch seconds."""

    ledger: Ledger
    clock: Callable[[], float] = time.time

    def describe(self) -> Iterable[Metric]:
        return ()  # or the registry would collect everything once for it

    def collect(self) -> Iterator[Metric]:
        yield from _of_partitions(self.ledger.partition_metrics(), self.clock())
        rows = self.ledger.flow_metrics()
        yield from _of_flows(rows)
        yield from _of_heartbeats(rows)
        yield from _of_holds(self.ledger)


def exposition(collector: Collector) -> bytes:
    """What a collector has, in Prometheus's text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)


def _of_partitions(rows: Sequence[PartitionMetrics], now: float) -> Iterator[Metric]:
    labels = [(row.flow, *row.flow.split("->"), row.topic, str(row.partition)) for row in rows]
    lags = [max(0.0, now - row.newest_ms / 1000) if row.lag_records and row.newest_ms >= 0 else 0.0 for row in rows]

    def gauge(name: str, text: str, values: Iterable[float | None]) -> Metric:
        family = GaugeMetricFamily(f"airmirror_{name}", text, labels=PARTITION)
        for label, value in zip(labels, values, strict=True):
            if value is not None:
                family.add_metric(label, value)
        return family

    def counter(name: str, text: str, values: Iterable[float]) -> Metric:
        family = CounterMetricFamily(f"airmirror_{name}", text, labels=PARTITION)
        for label, value in zip(labels, values, strict=True):
            family.add_metric(label, value)
        return family

    yield gauge(
        "lag_records",
        "Records (offsets) of the source, up to its high watermark, that the last window left.",
        (row.lag_records for row in rows),
    )
    yield gauge("lag_seconds", "How old the newest record copied is, where there is a lag; else 0.", lags)
    yield counter("records", "Records replicated and verified.", (row.records for row in rows))
    yield counter("bytes", "Bytes of the record batches replicated and verified.", (row.bytes for row in rows))
    yield gauge(
        "replication_latency_seconds",
        "From the timestamp of the newest record copied to its commit on the target.",
        (row.latency_ms / 1000 if row.newest_ms >= 0 else None for row in rows),
    )
    yield gauge(
        "verified_timestamp_seconds",
        "When a gate last let something of the partition pass.",
        (row.verified_ms / 1000 if row.verified_ms >= 0 else None for row in rows),
    )
    # The names of kafka-lag-exporter, for dashboards that exist: the flow as if it were a consumer group of the source.
    groups = [(source, f"airmirror.{source}.{target}", *place) for _, source, target, *place in labels]
    of_group = (("kafka_consumergroup_group_lag", "Lag of the flow in records.", [row.lag_records for row in rows]),
                ("kafka_consumergroup_group_lag_seconds", "Lag of the flow in seconds.", lags))  # fmt: skip
    for name, text, values in of_group:
        family = GaugeMetricFamily(name, text, labels=LAG_EXPORTER)
        for group, value in zip(groups, values, strict=True):
            family.add_metric(group, value)
        yield family


def _of_flows(rows: Sequence[FlowMetric]) -> Iterator[Metric]:
    counters = {
        measure.WINDOWS: (
            "windows",
            "outcome",
            "Windows by how they ended: replicated, empty, incomplete, failed, busy.",
        ),
        measure.SECONDS: ("phase_seconds", "phase", "Seconds spent in each phase of windows and gates."),
        measure.JUDGED: ("judged_partitions", "result", "Partitions that gates let pass, held, or could not read."),
    }
    gauges = {
        measure.LAST_SECONDS: ("last_window_seconds", "How long the last window took, its gate excepted."),
        measure.MEASURED: ("last_window_timestamp_seconds", "When the last window ended that did not fail as a whole."),
        measure.VERIFIED: (
            "last_verified_timestamp_seconds",
            "When the last window ended that is verified as a whole.",
        ),
    }
    for stored, (name, label, text) in counters.items():
        family = CounterMetricFamily(f"airmirror_{name}", text, labels=(*FLOW, label))
        for row in rows:
            if row.name == stored:
                family.add_metric((row.flow, *row.flow.split("->"), row.label), row.value)
        yield family
    late = CounterMetricFamily(
        "airmirror_late_runs", "Runs that did not end in time (window.deadline.ms).", labels=FLOW
    )
    for row in rows:
        if row.name == measure.LATE:
            late.add_metric((row.flow, *row.flow.split("->")), row.value)
    yield late
    for stored, (name, text) in gauges.items():
        gauge = GaugeMetricFamily(f"airmirror_{name}", text, labels=FLOW)
        for row in rows:
            if row.name == stored:
                gauge.add_metric((row.flow, *row.flow.split("->")), row.value)
        yield gauge


def _of_heartbeats(rows: Sequence[FlowMetric]) -> Iterator[Metric]:
    latency = GaugeMetricFamily(
        "airmirror_end_to_end_latency_seconds",
        "Of the last window's heartbeats, from emission on the source until readable and verified on the target.",
        labels=(*FLOW, "origin", "until", "of"),
    )
    newest = GaugeMetricFamily(
        "airmirror_heartbeat_timestamp_seconds",
        "When the newest heartbeat that is verified on the target was emitted.",
        labels=(*FLOW, "origin"),
    )
    for row in rows:
        labels = (row.flow, *row.flow.split("->"), row.label)
        if row.name in measure.LATENCY:
            latency.add_metric((*labels, *measure.LATENCY[row.name]), row.value)
        elif row.name == measure.HEARTBEAT:
            newest.add_metric(labels, row.value)
    yield latency
    yield newest


def _of_holds(ledger: Ledger) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "airmirror_held", "1 for a partition that is held, by the gate or by somebody.", labels=(*PARTITION, "by")
    )
    for flow, hold in ledger.holds():
        family.add_metric((flow, *flow.split("->"), hold.topic, str(hold.partition), hold.by), 1)
    yield family

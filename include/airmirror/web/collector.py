"""The ledger's numbers as Prometheus's metrics; docs/metrics.md lists them. Nothing is asked of Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from airmirror.flows import measure
from airmirror.ledger import FlowMetric, GroupLag, Ledger, PartitionMetrics
from airmirror.ledger.groups import ReadAgain
from airmirror.ledger.metrics import MALFORMED
from airmirror.ledger.recovery import complete_ms, seen_by_flow
from airmirror.partitions import grouped
from airmirror.wire.mappings import Hold

FLOW = ("flow", "source", "target")
PARTITION = (*FLOW, "topic", "partition")
GROUP = ("cluster_name", "group")
LAG_EXPORTER = (*GROUP, "topic", "partition")


@dataclass(frozen=True)
class LedgerCollector(Collector):
    """The ledger's contents now, as metric families; ``clock`` gives epoch seconds. ``flows``: the names of those that are
    shown; None: all."""

    ledger: Ledger
    clock: Callable[[], float] = time.time
    flows: Collection[str] | None = None

    def describe(self) -> Iterable[Metric]:
        return ()  # or the registry would collect everything once for it

    def collect(self) -> Iterator[Metric]:
        partitions, rows, holds = self.ledger.partition_metrics(), self.ledger.flow_metrics(), self.ledger.holds()
        every = {row.flow for row in partitions} | {row.flow for row in rows} | {flow for flow, _ in holds}
        shown = every if self.flows is None else every.intersection(self.flows)
        owners, now = {flow: self.ledger.flow(flow).owners() for flow in shown}, self.clock()

        def is_open(flow: str, topic: str) -> bool:
            return flow in owners and not owners[flow].why_frozen(topic)

        partitions = [row for row in partitions if is_open(row.flow, row.topic)]
        rows = [row for row in rows if row.flow in owners]
        gauges = [row for row in rows if not owners[row.flow].shut]
        yield from _of_partitions(partitions, seen_by_flow(rows), now)
        yield from _of_groups([*map(partial(_as_group, now), partitions), *self.ledger.group_lags()])
        yield from _of_read_again(self.ledger.read_again())
        yield from _of_flows(rows, gauges)
        yield from _of_heartbeats(gauges)
        yield _of_holds([(flow, hold) for flow, hold in holds if is_open(flow, hold.topic)])


def exposition(*collectors: Collector) -> bytes:
    """Return collectors' counters and gauges in Prometheus's text format (version 0.0.4).

    The bytes are generate_latest's, which writes and checks the labels of a partition again for every one of its metrics: that
    takes three times as long.
    """
    written: dict[tuple[tuple[str, str], ...], str] = {}
    lines = []
    for family in (family for collector in collectors for family in collector.collect()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        lines.append(f"# HELP {name} {_escaped(family.documentation)}\n# TYPE {name} {family.type}\n")
        for sample in family.samples:
            labels = tuple(sample.labels.items())
            text = written.get(labels)
            if text is None:
                text = ",".join(f'{key}="{_escaped(value, quoted=True)}"' for key, value in sorted(labels))
                written[labels] = text
            value = floatToGoString(sample.value)  # type: ignore[no-untyped-call]
            lines.append(f"{sample.name}{{{text}}} {value}\n")
    return "".join(lines).encode()


def _escaped(text: str, quoted: bool = False) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return text.replace('"', r"\"") if quoted else text


Samples = Iterable[tuple[Sequence[str], float | None]]


def _filled(
    kind: type[GaugeMetricFamily | CounterMetricFamily], name: str, text: str, labels: Sequence[str], samples: Samples
) -> Metric:
    """A family with the samples that have a value."""
    family = kind(name, text, labels=labels)
    for place, value in samples:
        if value is not None:
            family.add_metric(place, value)
    return family


filled_gauge, _filled_counter = partial(_filled, GaugeMetricFamily), partial(_filled, CounterMetricFamily)


def _of_flow(flow: str, *more: object) -> tuple[str, ...]:
    """The values of FLOW, and of what comes after it."""
    return (flow, *flow.split("->"), *map(str, more))


def _of_partitions(rows: Sequence[PartitionMetrics], seen: Mapping[str, int], now: float) -> Iterator[Metric]:
    places = [_of_flow(row.flow, row.topic, row.partition) for row in rows]

    def gauge(name: str, text: str, values: Iterable[float | None]) -> Metric:
        return filled_gauge(f"airmirror_{name}", text, PARTITION, zip(places, values, strict=True))

    def counter(name: str, text: str, values: Iterable[float]) -> Metric:
        return _filled_counter(f"airmirror_{name}", text, PARTITION, zip(places, values, strict=True))

    def seconds(name: str, text: str, values: Iterable[float | None]) -> Metric:
        return gauge(f"{name}_seconds", text, (None if value is None else value / 1000 for value in values))

    yield gauge(
        "lag_records",
        "Source offsets, up to the high watermark, that were not replicated when the last window ended.",
        (row.lag_records for row in rows),
    )
    yield seconds(
        "lag",
        "The age of the newest record copied if there is a lag, else 0. Absent if none was copied yet.",
        (_lag_ms(row, now) for row in rows),
    )
    yield counter("records", "Records replicated and verified.", (row.records for row in rows))
    yield counter("bytes", "Bytes of the record batches replicated and verified.", (row.bytes for row in rows))
    yield seconds(
        "replication_latency",
        "From the timestamp of the newest record copied to its commit on the target.",
        (row.latency_ms if row.newest_ms >= 0 else None for row in rows),
    )
    yield seconds(
        "replication_latency_max",
        "From the timestamp of the oldest record of the last transaction to its commit on the target.",
        (row.latency_most_ms for row in rows),
    )
    yield seconds(
        "record_age",
        "The age of the newest record copied when it was read from the source.",
        (row.age_ms for row in rows),
    )
    yield seconds(
        "record_age_max",
        "The age of the oldest record of the last transaction when it was read from the source.",
        (row.age_most_ms for row in rows),
    )
    yield seconds(
        "verified_timestamp",
        "When a gate last let something of the partition pass.",
        (row.verified_ms if row.verified_ms >= 0 else None for row in rows),
    )
    complete = (complete_ms(row, seen.get(row.flow)) for row in rows)
    yield gauge(
        "recovery_point_seconds",
        "Records of the source that are younger than this may be missing on the target. Absent if nothing is verified yet.",
        (None if at is None else max(0.0, now - at / 1000) for at in complete),
    )


def _lag_ms(row: PartitionMetrics, now: float) -> float | None:
    """None: there is a lag, and no record was copied whose age would tell it."""
    if not row.lag_records:
        return 0.0
    return max(0.0, now * 1000 - row.newest_ms) if row.newest_ms >= 0 else None


def _as_group(now: float, row: PartitionMetrics) -> GroupLag:
    """The flow as if it were a consumer group of its source."""
    source, target = row.flow.split("->")
    position, lag = max(0, row.high_watermark - row.lag_records), _lag_ms(row, now)
    return GroupLag(
        group=f"airmirror.{source}.{target}",
        topic=row.topic,
        partition=row.partition,
        cluster=source,
        position=position,
        lag=row.lag_records,
        lag_ms=None if lag is None else round(lag),
        time_ms=int(now * 1000),
    )


def _of_groups(rows: Sequence[GroupLag]) -> Iterator[Metric]:
    """The names of kafka-lag-exporter, for dashboards that exist."""
    places = [(row.cluster, row.group, row.topic, str(row.partition)) for row in rows]
    lags = [float(row.lag) for row in rows]
    seconds = [None if row.lag_ms is None else row.lag_ms / 1000 for row in rows]

    def over(labels: int, values: Iterable[float | None], what: Callable[[list[float]], float]) -> Samples:
        pairs = zip(places, values, strict=True)
        found = grouped((place[:labels], value) for place, value in pairs if value is not None)
        return ((place, what(each)) for place, each in found.items())

    def family(name: str, text: str, labels: Sequence[str], values: Samples) -> Metric:
        return filled_gauge(f"kafka_consumergroup_group_{name}", text, labels, values)

    positions = [(place, row.position) for place, row in zip(places, rows, strict=True)]
    yield family("offset", "The next offset that the group reads.", LAG_EXPORTER, positions)
    yield family("lag", "Lag of the group in records.", LAG_EXPORTER, zip(places, lags, strict=True))
    yield family("lag_seconds", "Lag of the group in seconds.", LAG_EXPORTER, zip(places, seconds, strict=True))
    yield family("max_lag", "The largest of its lags in records.", GROUP, over(2, lags, max))
    yield family("max_lag_seconds", "The largest of its lags in seconds.", GROUP, over(2, seconds, max))
    yield family("sum_lag", "The sum of its lags in records.", GROUP, over(2, lags, sum))
    yield family("topic_sum_lag", "The sum of its lags in records.", (*GROUP, "topic"), over(3, lags, sum))


def _of_read_again(rows: Sequence[ReadAgain]) -> Iterator[Metric]:
    labels, places = (*FLOW, "group"), [_of_flow(row.flow, row.group) for row in rows]
    yield filled_gauge(
        "airmirror_group_would_read_again_records",
        "Records that the group would read again if it failed over now.",
        labels,
        ((place, row.records) for place, row in zip(places, rows, strict=True)),
    )
    yield filled_gauge(
        "airmirror_group_would_read_again_seconds",
        "The age of the oldest of these records.",
        labels,
        ((place, None if row.ms is None else row.ms / 1000) for place, row in zip(places, rows, strict=True)),
    )


# By the number's name in the ledger: the metric's, the label that tells its values apart, if any, and what it says.
_COUNTERS = {
    measure.WINDOWS: ("windows", "outcome", "Windows by how they ended: replicated, empty, incomplete, failed, busy."),
    measure.SECONDS: ("phase_seconds", "phase", "Seconds spent in each phase of windows and gates."),
    MALFORMED: (
        "malformed_records",
        "kind",
        "Records of the internal topics that were skipped: mappings, progress, checkpoints, offset_syncs.",
    ),
    measure.WAITED: (
        "waited_seconds",
        "for",
        "Of each window the most seconds that a slot waited: for throttle.bytes.per.second (limit), for brokers (quotas).",
    ),
    measure.JUDGED: ("judged_partitions", "result", "Partitions that gates let pass, held, or could not read."),
    measure.LATE: ("late_runs", "", "Runs that did not end in time (window.deadline.ms)."),
    measure.CHECKPOINTS: ("checkpoints", "", "Checkpoints of consumer groups that were written."),
}
_GAUGES = {
    measure.LIMIT: ("limit_bytes_per_second", "throttle.bytes.per.second of the flow; 0: there is no limit."),
    measure.LAST_SECONDS: ("last_window_seconds", "The duration of the last window, its gate excepted."),
    measure.MEASURED: ("last_window_timestamp_seconds", "When the last window ended that did not fail as a whole."),
    measure.VERIFIED: ("last_verified_timestamp_seconds", "When the last window ended that is verified as a whole."),
    measure.CHECKPOINT_SECONDS: (
        "checkpoint_latency_seconds",
        "From reading the groups' offsets to the commit of their checkpoints, the last time any were written.",
    ),
}


def _of_flows(rows: Sequence[FlowMetric], gauges: Sequence[FlowMetric]) -> Iterator[Metric]:
    for stored, (name, label, text) in _COUNTERS.items():
        found = [row for row in rows if row.name == stored]
        samples = ((_of_flow(row.flow, *([row.label] if label else [])), row.value) for row in found)
        yield _filled_counter(f"airmirror_{name}", text, (*FLOW, *([label] if label else [])), samples)
    for stored, (name, text) in _GAUGES.items():
        found = [row for row in gauges if row.name == stored]
        yield filled_gauge(f"airmirror_{name}", text, FLOW, ((_of_flow(row.flow), row.value) for row in found))


def _of_heartbeats(rows: Sequence[FlowMetric]) -> Iterator[Metric]:
    latencies = [row for row in rows if row.name in measure.LATENCY]
    yield filled_gauge(
        "airmirror_end_to_end_latency_seconds",
        "Of the last window's heartbeats, from emission on the source until readable and verified on the target.",
        (*FLOW, "origin", "until", "of"),
        ((_of_flow(row.flow, row.label, *measure.LATENCY[row.name]), row.value) for row in latencies),
    )
    yield filled_gauge(
        "airmirror_heartbeat_timestamp_seconds",
        "When the newest heartbeat that is verified on the target was emitted.",
        (*FLOW, "origin"),
        ((_of_flow(row.flow, row.label), row.value) for row in rows if row.name == measure.HEARTBEAT),
    )


def _of_holds(holds: Iterable[tuple[str, Hold]]) -> Metric:
    found = ((_of_flow(flow, hold.topic, hold.partition, hold.by), 1) for flow, hold in holds)
    return filled_gauge(
        "airmirror_held", "1 for a partition that is held, by the gate or by an operator.", (*PARTITION, "by"), found
    )

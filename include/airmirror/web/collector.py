"""The ledger's numbers as Prometheus's metrics; docs/metrics.md lists them. Nothing is asked of Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

FLOW = ("flow", "source", "target")
PARTITION = (*FLOW, "topic", "partition")
GROUP = ("cluster_name", "group")
LAG_EXPORTER = (*GROUP, "topic", "partition")


@dataclass(frozen=True)
class LedgerCollector(Collector):
    """The ledger's contents now, as metric families; ``clock`` gives epoch seconds."""

    ledger: Ledger
    clock: Callable[[], float] = time.time

    def describe(self) -> Iterable[Metric]:
        return ()  # or the registry would collect everything once for it

    def collect(self) -> Iterator[Metric]:
        partitions, now = self.ledger.partition_metrics(), self.clock()
        rows = self.ledger.flow_metrics()
        yield from _of_partitions(partitions, now)
        yield _of_recovery(partitions, seen_by_flow(rows), now)
        yield from _of_groups([*map(partial(_as_group, now), partitions), *self.ledger.group_lags()])
        yield from _of_read_again(self.ledger.read_again())
        yield from _of_flows(rows)
        yield from _of_heartbeats(rows)
        yield from _of_holds(self.ledger)


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


def _of_partitions(rows: Sequence[PartitionMetrics], now: float) -> Iterator[Metric]:
    labels = [(row.flow, *row.flow.split("->"), row.topic, str(row.partition)) for row in rows]

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
        "Source offsets, up to the high watermark, that were not replicated when the last window ended.",
        (row.lag_records for row in rows),
    )
    yield gauge(
        "lag_seconds",
        "The age of the newest record copied if there is a lag, else 0. Absent if none was copied yet.",
        (None if (lag := _lag_ms(row, now)) is None else lag / 1000 for row in rows),
    )
    yield counter("records", "Records replicated and verified.", (row.records for row in rows))
    yield counter("bytes", "Bytes of the record batches replicated and verified.", (row.bytes for row in rows))
    yield gauge(
        "replication_latency_seconds",
        "From the timestamp of the newest record copied to its commit on the target.",
        (row.latency_ms / 1000 if row.newest_ms >= 0 else None for row in rows),
    )
    for name, text, values in (
        (
            "replication_latency_max_seconds",
            "From the timestamp of the oldest record of the last transaction to its commit on the target.",
            (row.latency_most_ms for row in rows),
        ),
        (
            "record_age_seconds",
            "The age of the newest record copied when it was read from the source.",
            (row.age_ms for row in rows),
        ),
        (
            "record_age_max_seconds",
            "The age of the oldest record of the last transaction when it was read from the source.",
            (row.age_most_ms for row in rows),
        ),
    ):
        yield gauge(name, text, (value if value is None else value / 1000 for value in values))
    yield gauge(
        "verified_timestamp_seconds",
        "When a gate last let something of the partition pass.",
        (row.verified_ms / 1000 if row.verified_ms >= 0 else None for row in rows),
    )


def _of_recovery(rows: Sequence[PartitionMetrics], seen: Mapping[str, int], now: float) -> Metric:
    family = GaugeMetricFamily(
        "airmirror_recovery_point_seconds",
        "Records of the source that are younger than this may be missing on the target. Absent if nothing is verified yet.",
        labels=PARTITION,
    )
    for row in rows:
        complete = complete_ms(row, seen.get(row.flow))
        if complete is not None:
            place = (row.flow, *row.flow.split("->"), row.topic, str(row.partition))
            family.add_metric(place, max(0.0, now - complete / 1000))
    return family


def _lag_ms(row: PartitionMetrics, now: float) -> float | None:
    """None: there is a lag, and no record was copied whose age would tell it."""
    if not row.lag_records:
        return 0.0
    return max(0.0, now * 1000 - row.newest_ms) if row.newest_ms >= 0 else None


def _as_group(now: float, row: PartitionMetrics) -> GroupLag:
    """The flow as if it were a consumer group of its source."""
    source, target = row.flow.split("->")
    position, lag = max(0, row.high_watermark - row.lag_records), _lag_ms(row, now)
    lag_ms = None if lag is None else round(lag)
    group = f"airmirror.{source}.{target}"
    return GroupLag(
        group=group,
        topic=row.topic,
        partition=row.partition,
        cluster=source,
        position=position,
        lag=row.lag_records,
        lag_ms=lag_ms,
        time_ms=int(now * 1000),
    )


def _of_groups(rows: Sequence[GroupLag]) -> Iterator[Metric]:
    """The names of kafka-lag-exporter, for dashboards that exist."""
    places = [(row.cluster, row.group, row.topic, str(row.partition)) for row in rows]
    lags = [float(row.lag) for row in rows]
    seconds = [None if row.lag_ms is None else row.lag_ms / 1000 for row in rows]
    of_group: dict[tuple[str, ...], list[float]] = {}
    of_topic: dict[tuple[str, ...], list[float]] = {}
    seconds_of_group: dict[tuple[str, ...], list[float]] = {}
    for place, lag, age in zip(places, lags, seconds, strict=True):
        of_group.setdefault(place[:2], []).append(lag)
        of_topic.setdefault(place[:3], []).append(lag)
        if age is not None:
            seconds_of_group.setdefault(place[:2], []).append(age)

    def family(name: str, text: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float]]) -> Metric:
        found = GaugeMetricFamily(f"kafka_consumergroup_group_{name}", text, labels=labels)
        for place, value in values:
            found.add_metric(place, value)
        return found

    known = [(place, age) for place, age in zip(places, seconds, strict=True) if age is not None]
    positions = [(place, row.position) for place, row in zip(places, rows, strict=True)]
    yield family("offset", "The next offset that the group reads.", LAG_EXPORTER, positions)
    yield family("lag", "Lag of the group in records.", LAG_EXPORTER, zip(places, lags, strict=True))
    yield family("lag_seconds", "Lag of the group in seconds.", LAG_EXPORTER, known)
    yield family("max_lag", "The largest of its lags in records.", GROUP, _each(of_group, max))
    yield family("max_lag_seconds", "The largest of its lags in seconds.", GROUP, _each(seconds_of_group, max))
    yield family("sum_lag", "The sum of its lags in records.", GROUP, _each(of_group, sum))
    yield family("topic_sum_lag", "The sum of its lags in records.", (*GROUP, "topic"), _each(of_topic, sum))


def _of_read_again(rows: Sequence[ReadAgain]) -> Iterator[Metric]:
    labels = (*FLOW, "group")
    records = GaugeMetricFamily(
        "airmirror_group_would_read_again_records",
        "Records that the group would read again if it failed over now.",
        labels=labels,
    )
    seconds = GaugeMetricFamily(
        "airmirror_group_would_read_again_seconds", "The age of the oldest of these records.", labels=labels
    )
    for row in rows:
        place = (row.flow, *row.flow.split("->"), row.group)
        records.add_metric(place, row.records)
        if row.ms is not None:
            seconds.add_metric(place, row.ms / 1000)
    yield from (records, seconds)


def _each(
    found: Mapping[tuple[str, ...], list[float]], what: Callable[[list[float]], float]
) -> Iterator[tuple[Sequence[str], float]]:
    return ((place, what(values)) for place, values in found.items())


def _of_flows(rows: Sequence[FlowMetric]) -> Iterator[Metric]:
    counters = {
        measure.WINDOWS: (
            "windows",
            "outcome",
            "Windows by how they ended: replicated, empty, incomplete, failed, busy.",
        ),
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
    }
    gauges = {
        measure.LIMIT: ("limit_bytes_per_second", "throttle.bytes.per.second of the flow; 0: there is no limit."),
        measure.LAST_SECONDS: ("last_window_seconds", "The duration of the last window, its gate excepted."),
        measure.MEASURED: ("last_window_timestamp_seconds", "When the last window ended that did not fail as a whole."),
        measure.VERIFIED: (
            "last_verified_timestamp_seconds",
            "When the last window ended that is verified as a whole.",
        ),
        measure.CHECKPOINT_SECONDS: (
            "checkpoint_latency_seconds",
            "From reading the groups' offsets to the commit of their checkpoints, the last time any were written.",
        ),
    }
    for stored, (name, label, text) in counters.items():
        family = CounterMetricFamily(f"airmirror_{name}", text, labels=(*FLOW, label))
        for row in rows:
            if row.name == stored:
                family.add_metric((row.flow, *row.flow.split("->"), row.label), row.value)
        yield family
    plain = {
        measure.LATE: ("late_runs", "Runs that did not end in time (window.deadline.ms)."),
        measure.CHECKPOINTS: ("checkpoints", "Checkpoints of consumer groups that were written."),
    }
    for stored, (name, text) in plain.items():
        counter = CounterMetricFamily(f"airmirror_{name}", text, labels=FLOW)
        for row in rows:
            if row.name == stored:
                counter.add_metric((row.flow, *row.flow.split("->")), row.value)
        yield counter
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
        "airmirror_held", "1 for a partition that is held, by the gate or by an operator.", labels=(*PARTITION, "by")
    )
    for flow, hold in ledger.holds():
        family.add_metric((flow, *flow.split("->"), hold.topic, str(hold.partition), hold.by), 1)
    yield family

"""MirrorMaker 2's own metric names: what Strimzi's dashboards ask of them finds a series of a real flow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fastapi import Depends
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from airmirror.flows.measure import measure_checkpoints, measure_window
from airmirror.ledger import Ledger
from airmirror.ledger.metrics import Standing
from airmirror.web import app, tokens
from airmirror.web.collector import exposition
from airmirror.web.mirrormaker_names import FORMATS, MirrorMakerCollector
from airmirror_local.brokers import Broker
from ledger.test_ledger import entries, load, mapping, verified
from support.flows import Mirror, mirror
from support.groups import commit
from support.mirrormaker import numbered
from support.post_window import emit
from support.topics import produce

TOKEN = {"Authorization": "Bearer token-of-metrics"}
# What docs/metrics.md lets the scrape add, as Strimzi's own monitors do from the labels of pods.
ADDED = {"strimzi_io_kind": "KafkaMirrorMaker2", "strimzi_io_cluster": "airmirror", "namespace": "kafka"}
OF_STRIMZI = {"strimzi_io_kind": "KafkaMirrorMaker2", "strimzi_io_cluster": "airmirror"}
ROWS, CHECKPOINTS = ("partition", "topic"), ("source", "target", "topic", "partition", "group")
SOURCE = "kafka_connect_mirror_mirrorsourceconnector"


@dataclass(frozen=True)
class Panel:
    """A query of a dashboard: the metric, regular expressions of its labels, and the labels that it is summed up by."""

    metric: str
    labels: Mapping[str, str]
    by: tuple[str, ...] = ()


# Strimzi's dashboards for MirrorMaker 2, of its JMX exporter (the first lag and count) and of its metrics reporter.
DASHBOARDS = [
    Panel("kafka_connect_worker_connector_count", {**OF_STRIMZI, "namespace": "kafka"}),  # its variables
    Panel("kafka_connect_connect_worker_metrics_connector_count", {**OF_STRIMZI, "namespace": "kafka"}),
    Panel(f"{SOURCE}_record_rate", OF_STRIMZI),
    Panel(f"{SOURCE}_byte_rate", OF_STRIMZI),
    *(Panel(f"{SOURCE}_record_age_ms{suffix}", OF_STRIMZI, ROWS) for suffix in ("", "_avg", "_min", "_max")),
    *(Panel(f"{SOURCE}_replication_latency_ms{suffix}", OF_STRIMZI, ROWS) for suffix in ("", "_avg", "_min", "_max")),
    Panel("kafka_consumer_fetch_manager_records_lag", {**OF_STRIMZI, "clientid": '.*replication-consumer"'}, ROWS),
    Panel(
        "kafka_consumer_consumer_fetch_manager_metrics_records_lag",
        {**OF_STRIMZI, "client_id": ".*replication-consumer"},
        ROWS,
    ),
    Panel("kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms", OF_STRIMZI, CHECKPOINTS),
]
NUMBERS = ("record_count", "record_rate", "byte_count", "byte_rate")
SPREAD = tuple(
    f"{name}{suffix}" for name in ("record_age_ms", "replication_latency_ms") for suffix in ("", "_min", "_max", "_avg")
)


def samples(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        yield from family.samples


def answered(text: str, panel: Panel) -> dict[tuple[str, ...], float]:
    """The sums of a query's series, as Prometheus has them that adds the labels of the scrape."""
    found: dict[tuple[str, ...], float] = {}
    for sample in samples(text):
        labels = {**sample.labels, **ADDED}
        if sample.name == panel.metric and all(
            re.fullmatch(wanted, labels.get(name, "")) for name, wanted in panel.labels.items()
        ):
            place = tuple(labels[name] for name in panel.by)
            found[place] = found.get(place, 0.0) + sample.value
    return found


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setattr(tokens, "_token", lambda conn_id: {"airmirror_metrics": "token-of-metrics"}.get(conn_id, ""))
    monkeypatch.setattr(app, "may_see_plugins", lambda: Depends(lambda: None))
    monkeypatch.setenv("AIRMIRROR_LEDGER", f"sqlite:///{tmp_path / 'ledger.db'}")
    return TestClient(app.build_app(), raise_server_exceptions=False)


def replicated(east: Broker, west: Broker, directory: Path) -> Mirror:
    """A flow that a window and a run of checkpoints have measured."""
    flow = mirror(east, west, directory, partitions=2, ledger_url=f"sqlite:///{directory / 'ledger.db'}")
    for partition in range(2):
        produce(east, flow.topic, numbered(20), partition=partition)
    result = flow.run()
    assert result.is_verified
    measure_window(flow.opened, result, lambda key: True)
    flow.opened.ledger.count_verified()
    commit(east, f"g-{flow.topic}", {(flow.topic, 0): 5, (flow.topic, 1): 7})
    assert emit(flow, f"g-{flow.topic}") == 2
    measure_checkpoints(flow.opened, 2, 0.25)
    assert emit(flow, f"g-{flow.topic}") == 0  # the next run reads what this one wrote
    return flow


def test_each_query_of_strimzis_dashboards_finds_a_real_flow(
    east: Broker, west: Broker, tmp_path: Path, client: TestClient
) -> None:
    flow = replicated(east, west, tmp_path)
    alias, group = flow.flow.source.alias, f"g-{flow.topic}"
    text = client.get("/metrics", params={"metric.names.formats": "legacy"}, headers=TOKEN).text
    for panel in DASHBOARDS:
        topic = flow.topic if "records_lag" in panel.metric else flow.remote_topic
        found = answered(text, panel)
        if panel.by == ROWS:
            assert found.keys() == {("0", topic), ("1", topic)}, panel
            assert all(value >= 0 for value in found.values())
        elif panel.by == CHECKPOINTS:
            assert found == {(alias, "west", topic, str(number), group): 250.0 for number in range(2)}, panel
        else:
            assert found.keys() == {()} and (found[()] > 0) is ("_rate" not in panel.metric), panel  # of one window
    plain = client.get("/metrics", headers=TOKEN).text
    assert "kafka_connect" not in plain
    assert {sample.name for sample in samples(plain)} < {sample.name for sample in samples(text)}


def test_the_formats_are_mirrormaker_2s(client: TestClient) -> None:
    answer = client.get("/metrics", params={"metric.names.formats": "legacy, newer"}, headers=TOKEN)
    assert answer.status_code == 400 and "not 'newer', but legacy, new or legacy,new" in answer.text
    assert client.get("/metrics", params={"metric.names.formats": "legacy"}).status_code == 401


def values(ledger: Ledger, now: float) -> dict[str, tuple[dict[str, str], float]]:
    """By name, the labels and the value of each metric; of several the last."""
    text = exposition(MirrorMakerCollector(ledger, FORMATS, clock=lambda: now)).decode()
    return {sample.name: (sample.labels, sample.value) for sample in samples(text)}


def test_values_and_labels_of_both_formats(tmp_path: Path) -> None:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        flow = ledger.flow("east->west")
        first = replace(mapping(0, 10), min_timestamp=2, read_ms=805, time_ms=1000)
        load(flow, entries(first, replace(verified(9), time_ms=10_000)))
        flow.note_standings([Standing("orders", 0, "east.orders", 10, 25)])
        flow.count_verified()
        found = values(ledger, 20.0)
        place = {"source": "east", "target": "west", "topic": "east.orders", "partition": "0"}
        expected = dict(zip(SPREAD, (800, 800, 803, 801.5, 995, 995, 998, 996.5), strict=True))
        expected |= {"record_count": 10, "byte_count": 100, "record_rate": 0, "byte_rate": 0}
        for name in (*NUMBERS, *SPREAD):
            assert found[f"{SOURCE}_{name}"] == (place, pytest.approx(expected[name])), name
            task = {"connector": "east->west.MirrorSourceConnector", "task": "0"}
            assert found[f"kafka_connect_plugins_{name}"] == (task | place, pytest.approx(expected[name])), name
        lag = {
            "clientid": '"east->west|MirrorSourceConnector|replication-consumer"',
            "topic": "orders",
            "partition": "0",
        }
        assert found["kafka_consumer_fetch_manager_records_lag"] == (lag, 15)


def test_a_rate_is_that_of_the_last_minute_and_ends(tmp_path: Path) -> None:
    """A hundred records each ten seconds, then none: 10 a second, then nothing, so that alerts on it fire."""
    name = f"{SOURCE}_record_rate"
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        flow, log = ledger.flow("east->west"), []
        flow.note_standings([Standing("orders", 0, "east.orders", 0, 0)])
        for number in range(30):
            now = 10_000 * (number + 1)
            log.append(replace(mapping(100 * number, 100 * (number + 1)), time_ms=now))
            log.append(replace(verified(100 * (number + 1) - 1), time_ms=now))
            load(flow, entries(*log))
            flow.count_verified()
            if number > 0:
                assert values(ledger, now / 1000)[name][1] == pytest.approx(10, rel=0.01), number
        assert 0 < values(ledger, now / 1000 + 200)[name][1] < 5
        assert values(ledger, now / 1000 + 301)[name][1] == 0

"""The metrics: their names and values, what a scrape of many partitions costs, and the rules and dashboard on them."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from airmirror.ledger import GroupLag, Ledger
from airmirror.ledger.metrics import Standing
from airmirror.web.collector import LedgerCollector, exposition
from airmirror.wire.mappings import Action, Decision, Hold
from airmirror.wire.owners import WHOLE, Change, OrderScope, Owners, Signed, changed
from ledger.test_ledger import entries, load, mapping, verified
from support import ROOT

MONITORING = ROOT / "include" / "monitoring"
ORDER = (
    "cluster_name",
    "group",
    "flow",
    "source",
    "target",
    "topic",
    "partition",
    "by",
    "outcome",
    "phase",
    "result",
    "kind",
    "for",
    "origin",
    "until",
    "of",
)
FUNCTIONS = {
    "max",
    "sum",
    "by",
    "deriv",
    "and",
    "unless",
    "time",
    "increase",
    "rate",
    "quantile",
    "topk",
    "label_values",
}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as opened:
        yield opened


def filled(ledger: Ledger) -> Ledger:
    flow = ledger.flow("east->west")
    held = Hold(topic="orders", partition=0, offset=10, reason="digest", window="w2", by="gate", time_ms=5)
    decided = Decision(topic="orders", partition=1, time_ms=6, action=Action.HOLD, offset=0, reason="wait", by="ann")
    first = replace(mapping(0, 10), min_timestamp=2, read_ms=805)
    load(flow, entries(first, verified(9), held, decided))
    flow.note_standings([Standing("orders", 0, "east.orders", 10, 25), Standing("orders", 1, "east.orders", 3, 3)])
    flow.count_verified()
    counters = {("windows", "failed"): 1, ("seconds", "copy"): 2.5, ("judged", "held"): 1, ("late_runs", ""): 2}
    counters |= {("malformed", "mappings"): 3, ("waited", "limit"): 12.5}
    flow.note(counters, {("verified", ""): 50, ("measured", ""): 60, ("last_seconds", ""): 3, ("seen", ""): 58})
    flow.note({}, {("limit", ""): 300_000, ("last_waited", "limit"): 2.5})
    flow.note({}, {("latency_readable_most", "north"): 7.5, ("heartbeat", "north"): 99})
    flow.note({("checkpoints", ""): 4}, {("checkpoint_seconds", ""): 1.5})
    billing = GroupLag(
        group="billing", topic="orders", partition=0, cluster="east", position=8, lag=17, lag_ms=90_000, time_ms=99_000
    )
    billing = replace(billing, again=4, again_ms=2500)
    flow.note_group_lags([billing, replace(billing, partition=1, lag=3, lag_ms=None, again_ms=None)])
    return ledger


def scraped(ledger: Ledger) -> dict[str, dict[tuple[str, ...], float]]:
    """Values by metric and the labels' values."""
    text = exposition(LedgerCollector(ledger, clock=lambda: 100.0)).decode()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels[name] for name in ORDER if name in sample.labels)] = (
                sample.value
            )
    return found


def test_values(ledger: Ledger) -> None:
    found = scraped(filled(ledger))
    flow = ("east->west", "east", "west")
    orders = (*flow, "orders", "0")
    assert found["airmirror_lag_records"] == {orders: 15, (*flow, "orders", "1"): 0}
    assert found["airmirror_lag_seconds"][orders] == pytest.approx(100 - 0.005)
    assert found["airmirror_records_total"][orders] == 10 and found["airmirror_bytes_total"][orders] == 100
    assert found["airmirror_replication_latency_seconds"] == {orders: 0.995}
    assert found["airmirror_replication_latency_max_seconds"] == {orders: 0.998}
    assert found["airmirror_record_age_seconds"] == {orders: 0.8}
    assert found["airmirror_record_age_max_seconds"] == {orders: 0.803}
    assert found["airmirror_group_would_read_again_records"] == {("billing", *flow): 8}
    assert found["airmirror_group_would_read_again_seconds"] == {("billing", *flow): 2.5}
    assert found["airmirror_checkpoints_total"] == {flow: 4} and found["airmirror_checkpoint_latency_seconds"] == {
        flow: 1.5
    }
    # Of partition 0 the newest verified record is of 0.005; in partition 1 nothing was left when the ends were read.
    assert found["airmirror_recovery_point_seconds"] == {orders: pytest.approx(99.995), (*flow, "orders", "1"): 42}
    assert found["airmirror_held"] == {(*orders, "gate"): 1, (*flow, "orders", "1", "ann"): 1}
    assert found["kafka_consumergroup_group_lag"][("east", "airmirror.east.west", "orders", "0")] == 15
    assert found["airmirror_windows_total"] == {(*flow, "failed"): 1}
    assert found["airmirror_phase_seconds_total"] == {(*flow, "copy"): 2.5}
    assert found["airmirror_limit_bytes_per_second"] == {flow: 300_000}
    assert found["airmirror_waited_seconds_total"] == {(*flow, "limit"): 12.5}
    assert found["airmirror_judged_partitions_total"] == {(*flow, "held"): 1}
    assert found["airmirror_last_verified_timestamp_seconds"] == {flow: 50}
    assert found["airmirror_last_window_seconds"] == {flow: 3}
    assert found["airmirror_end_to_end_latency_seconds"] == {(*flow, "north", "readable", "most"): 7.5}
    assert found["airmirror_heartbeat_timestamp_seconds"] == {(*flow, "north"): 99}
    assert found["airmirror_late_runs_total"] == {flow: 2}
    assert found["airmirror_malformed_records_total"] == {(*flow, "mappings"): 3}


def test_the_lag_of_what_was_never_replicated_is_unknown_and_not_nothing(ledger: Ledger) -> None:
    ledger.flow("east->west").note_standings([Standing("orders", 0, "east.orders", 0, 1_000_000)])
    found = scraped(ledger)
    assert found["airmirror_lag_records"] == {("east->west", "east", "west", "orders", "0"): 1_000_000}
    assert "airmirror_lag_seconds" not in found and "kafka_consumergroup_group_lag_seconds" not in found


@pytest.mark.parametrize(("topic", "scope"), [(WHOLE, OrderScope.FLOW), ("orders", OrderScope.TOPIC)])
def test_of_what_is_frozen_counters_are_left(ledger: Ledger, topic: str, scope: OrderScope) -> None:
    """Nothing is lost by the failover that was: no alert fires for ever."""
    signed = Signed("freeze-1", 99, 5, "failed over", "ann")
    own = filled(ledger).flow("east->west")
    load(own, entries(*changed(Owners(), Change.FREEZE, [topic], signed, scope=scope), start=100))
    found = scraped(ledger)
    of_partitions = ("recovery_point_seconds", "lag_seconds", "lag_records", "held")
    assert not {f"airmirror_{name}" for name in of_partitions} & found.keys()
    of_flows = {"airmirror_last_verified_timestamp_seconds", "airmirror_heartbeat_timestamp_seconds"}
    assert of_flows & found.keys() == (set() if topic == WHOLE else of_flows)
    assert found["airmirror_windows_total"] == {("east->west", "east", "west", "failed"): 1}


def test_what_a_backfill_holds_is_held_under_no_flows_name(ledger: Ledger) -> None:
    """No gate judges it again, and no command could release it."""
    part = ledger.flow("east->west").part("backfill.old")
    load(part, entries(Hold("orders", 0, offset=0, reason="digest", window="w", by="gate", time_ms=5)))
    assert ledger.holds() == [] and "airmirror_held" not in scraped(ledger)


def test_a_long_label_is_cut(ledger: Ledger) -> None:
    """As a topic `<249 characters>.heartbeats` of the source makes it."""
    flow = ledger.flow("east->west")
    flow.note({("heartbeats", "n" * 240): 1.0}, {("heartbeat", "n" * 240): 99})
    flow.note({("heartbeats", "n" * 240): 1.0})
    assert flow.numbers() == {("heartbeats", "n" * 64): 2.0, ("heartbeat", "n" * 64): 99.0}


def test_groups_have_the_names_of_kafka_lag_exporter(ledger: Ledger) -> None:
    found = {
        name.removeprefix("kafka_consumergroup_group_"): values
        for name, values in scraped(filled(ledger)).items()
        if name.startswith("kafka_consumergroup_group_")
    }
    ours, billing = ("east", "airmirror.east.west"), ("east", "billing")
    assert found["offset"] == {
        (*ours, "orders", "0"): 10,
        (*ours, "orders", "1"): 3,
        (*billing, "orders", "0"): 8,
        (*billing, "orders", "1"): 8,
    }
    assert found["lag"][(*billing, "orders", "0")] == 17
    assert {place: lag for place, lag in found["lag_seconds"].items() if place[:2] == billing} == {
        (*billing, "orders", "0"): 90
    }
    assert found["max_lag"] == {ours: 15, billing: 17} and found["sum_lag"] == {ours: 15, billing: 20}
    assert found["topic_sum_lag"] == {(*ours, "orders"): 15, (*billing, "orders"): 20}
    assert found["max_lag_seconds"] == {ours: pytest.approx(99.995), billing: 90}
    assert found.keys() == {"offset", "lag", "lag_seconds", "max_lag", "max_lag_seconds", "sum_lag", "topic_sum_lag"}


def test_the_bytes_are_those_that_prometheus_client_writes(ledger: Ledger) -> None:
    flow = filled(ledger).flow('größe "\\\n->west')
    flow.note({("windows", 'a "b"\\\n'): 1e300, ("seconds", "copy"): 0.1}, {("verified", ""): 1_700_000_000.25})
    flow.note_standings([Standing("orders", 0, "orders", 10, 10**15)])
    registry = CollectorRegistry(auto_describe=False)
    collector = LedgerCollector(ledger, clock=lambda: 100.0)
    registry.register(collector)
    assert exposition(collector) == generate_latest(registry)


def steps(work: Callable[[], object]) -> int:
    """How many functions are called: what work costs, however busy the machine is."""
    counted = Counter[str]()
    sys.setprofile(lambda _frame, event, _argument: counted.update((event,)))
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted["call"] + counted["c_call"]


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_scrape_of_many_partitions_takes_a_few_steps_for_each(ledger: Ledger, count: int) -> None:
    """Less than a second for 10,000 on two cores; prometheus_client's own text takes three times as long."""
    flow = ledger.flow("east->west")
    places = [(f"t{n // 10}", n % 10) for n in range(count)]
    times = {"min_timestamp": 2, "read_ms": 800}
    load(flow, entries(*(item for at in places for item in (replace(mapping(0, 10, *at), **times), verified(9, *at)))))
    flow.note_standings([Standing(topic, number, f"east.{topic}", 10, 12) for topic, number in places])
    flow.count_verified()
    collector = LedgerCollector(ledger)
    text = exposition(collector)
    assert text.count(b"airmirror_lag_records{") == text.count(b"airmirror_record_age_max_seconds{") == count
    ours = steps(lambda: exposition(collector))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    print(f"{ours / count:.1f} steps a partition, {len(text) / 1e6:.1f} MB")
    assert ours < 300 * count and 2 * ours < steps(lambda: generate_latest(registry))


def expressions() -> Iterator[tuple[str, str]]:
    rules = yaml.safe_load((MONITORING / "prometheus-rules.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in json.loads((MONITORING / "grafana-dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.fixture(scope="module")
def labels() -> Mapping[str, set[str]]:
    """The labels of each metric of a filled ledger."""
    found: dict[str, set[str]] = {}
    with closing(Ledger("sqlite://")) as ledger:
        for family in text_string_to_metric_families(exposition(LedgerCollector(filled(ledger))).decode()):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize(("name", "expression"), list(expressions()))
def test_rules_and_dashboard_ask_for_metrics_that_there_are(
    labels: Mapping[str, set[str]], name: str, expression: str
) -> None:
    plain = re.sub(r'"[^"]*"|\[\d+[smhd]\]', "", expression)
    assert plain.count("(") == plain.count(")") and plain.count("{") == plain.count("}")
    metrics = set(re.findall(r"\b(?:airmirror|kafka)_\w+", plain))
    assert metrics and metrics <= labels.keys(), name
    of_all = set.intersection(*(labels[metric] for metric in metrics))
    for listed in re.findall(r"by \(([^)]*)\)", plain):
        assert {label.strip() for label in listed.split(",")} <= of_all, name
    for matchers in re.findall(r"\{([^}]*)\}", plain):
        assert {re.split(r"=~|!~|!=|=", matcher)[0].strip() for matcher in matchers.split(",")} <= of_all, name
    words = set(re.findall(r"[a-z_]+", re.sub(r"by \([^)]*\)|\{[^}]*\}", " ", plain)))
    assert words - metrics <= FUNCTIONS, name


def test_alerts_tell_what_they_are_about_and_can_start_runs() -> None:
    rules: dict[str, Any] = yaml.safe_load((MONITORING / "prometheus-rules.yml").read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        kept = re.findall(r"by \(([^)]*)\)", rule["expr"])[0].split(", ")
        assert {"flow", "source", "target"} <= set(kept), rule["alert"]
        used = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        assert used <= set(kept), rule["alert"]
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}

"""What a flow's report rests on: versions, expectations, take-overs, other clusters; and its check against both clusters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from airmirror.clusters.admin.appender import Appender
from airmirror.config import Flow
from airmirror.flows.gates import Expectations, expectations_of
from airmirror.flows.report import report_flow
from airmirror.flows.report_rows import Span
from airmirror.flows.report_spot import spot_check
from airmirror.naming import mapping_topic
from airmirror.report.canonical import canonical
from airmirror.report.document import Document
from airmirror_local.brokers import Broker
from support.disks import alter_value
from support.flows import Mirror, as_mirrormaker, mirror
from support.hostile import delete_records
from support.topics import Record, produce

SUITE = """
name: ours
topics: [orders.*]
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: lag_seconds, max_value: 12.5}
    severity: warning
"""


def report(flow: Mirror, **more: Any) -> Document:
    return report_flow(flow.opened, Span(), **more)


def values(count: int) -> list[Record]:
    return [Record(b"v%d" % number, b"k%d" % number) for number in range(count)]


def test_versions_and_expectations_are_named(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, values(5))
    flow.run()
    (tmp_path / "ours.yaml").write_text(SUITE)
    made = report(flow, by=expectations_of(tmp_path))
    named = {row["name"]: row["value"] for row in made.rows("versions")}
    assert {"Airmirror", "window.verify", f"cluster {flow.flow.source.alias}", "cluster west"} <= named.keys()
    assert "metadata.version" in named["cluster west"] and named["cluster west"].startswith("broker ")
    asked = [row for row in made.rows("expectations") if row["suite"] == "ours"]
    assert [(row["expectation"], row["severity"], row["topics"]) for row in asked] == [
        ("expect_column_values_to_be_between", "warning", ["orders.*"])
    ]
    assert json.loads(asked[0]["arguments"]) == {"column": "lag_seconds", "max_value": "12.5"}
    assert len(made.rows("expectations")) > 1, "the product's own suite"
    canonical(made.as_dict())  # nothing in it has two forms
    alone = report(flow, by=Expectations(None, "none were wanted"))
    assert not alone.rows("expectations") and any("none were wanted" in line for line in alone.not_known)

    def digest(of: Document) -> str:
        (found,) = (row["value"] for row in of.rows("versions") if row["name"].startswith("SHA-256"))
        return str(found)

    (setting, *others) = (each for each in flow.opened.configuration.settings if each.key.endswith(".topics"))
    changed = [each for each in flow.opened.configuration.settings if each is not setting]
    settings = (*changed, replace(setting, value=f"{setting.value}, more"))
    other = replace(flow.opened, configuration=replace(flow.opened.configuration, settings=settings))
    assert not others and digest(report_flow(other, Span())) != digest(alone) == digest(made)


def test_what_another_tool_has_copied_is_not_called_compared(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, values(30))
    as_mirrormaker(flow, 20, 9)  # it was killed between its records and its offsets
    flow.run()
    made = report(flow)
    assert made.is_good and "all but 10 that another tool had copied" in made.headline, made.headline
    assert any("10 records were copied by another tool" in line for line in made.not_known)
    assert any("oldest mapping record that is left" in line for line in made.not_known)


def test_a_cluster_that_is_another_one_now_is_a_contradiction(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, values(5))
    flow.run()
    moved: Flow = replace(flow.flow, source=replace(flow.flow.source, bootstrap_servers=(west.bootstrap,)))
    made = report_flow(replace(flow.opened, flow=moved), Span())
    (line,) = (row["contradiction"] for row in made.rows("contradictions"))
    assert "is another one now" in line and not made.is_good and made.numbers["contradictions"] == 1
    first, _ = made.rows("clusters")
    assert first["id_in_the_record"] != first["id_now"]


def test_a_report_is_checked_against_the_clusters(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    for _ in range(3):
        produce(east, flow.topic, values(10))
        flow.run()
    content = report(flow).as_dict()
    produce(east, flow.topic, values(10))
    flow.run()  # what came since is no matter
    found = spot_check(flow.opened, content, "seed")
    assert (found.partitions, found.records, found.wrong, found.notes) == (1, 30, (), ())
    whole = content["sections"]["partitions"][0]
    for altered in ({"sha256": "0" * 64}, {"source": [[0, 20]]}, {"partition": 7}):
        rows = {**content["sections"], "partitions": [whole | altered]}
        found = spot_check(flow.opened, content | {"sections": rows}, "seed")
        assert found.partitions == 0 and (found.wrong or found.notes), altered
    for nonsense in ({"sections": {}}, {"sections": {"partitions": [{"topic": "x"}]}}, {"sections": None}):
        assert "make no sense" in spot_check(flow.opened, content | nonsense, "seed").wrong[0]
    delete_records(west, flow.remote_topic, 15)
    whole, part = spot_check(flow.opened, content, "seed").notes
    assert "10 of 10 records are gone" in whole and "4 of 10 records are gone" in part
    first, second, *_ = flow.opened.ledger.mappings(flow.topic, 0)
    topic = mapping_topic(flow.flow.source.alias)
    with Appender(flow.flow.target, topic) as appender:
        appender.append([(second.encode_key(), replace(second, window="another").encode_value())])
    (wrong,) = spot_check(flow.opened, content, "seed").wrong
    assert "the mapping topic has other records" in wrong
    with Appender(flow.flow.target, topic) as appender:
        appender.append([(first.encode_key(), None)])
    found = spot_check(flow.opened, content, "seed")
    assert not found.wrong and "does not have all of it any more" in found.notes[0]


def test_a_record_that_is_another_one_on_a_cluster_by_now_is_found(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, values(10))
    flow.run()
    content = report(flow).as_dict()
    assert spot_check(flow.opened, content, "seed").wrong == ()
    alter_value(east, flow.topic, 0, b"v7")  # the copy is as it was written
    (wrong,) = spot_check(flow.opened, content, "seed").wrong
    assert wrong.startswith(f"{flow.topic}-0 offsets 0 to 9: ")
    alter_value(west, flow.remote_topic, 0, b"v7")
    assert spot_check(flow.opened, content, "seed").wrong == ()
    alter_value(west, flow.remote_topic, 0, b"v8")
    assert spot_check(flow.opened, content, "seed").wrong
    delete_records(east, flow.topic, 9)
    found = spot_check(flow.opened, content, "seed")
    assert not found.wrong and "9 of 10 records are gone" in found.notes[0]

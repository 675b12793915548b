"""A flow's report over real brokers: its counts are those of what was produced, and what contradicts the record is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.clusters.admin.appender import Appender
from airmirror.flows.report import NothingToReport, report_flow
from airmirror.flows.report_rows import Span, ranges
from airmirror.naming import mapping_topic
from airmirror.report.canonical import parsed
from airmirror.report.files import write_evidence
from airmirror.report.page import embedded_json, page
from airmirror.wire.mappings import Action, Decision, Hold, ResetRecord
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.groups import commit
from support.topics import Record, await_settled, delete_topic, produce, set_config

EVIL = "<img src=x onerror=alert(1)>\u202e"
PASSWORD = "hunter2-never-to-be-seen"
ALWAYS = Span()


def values(count: int) -> list[Record]:
    return [Record(b"v%d" % number, b"k%d" % number) for number in range(count)]


def write(flow: Mirror, *records: Hold | Decision | ResetRecord) -> None:
    with Appender(flow.flow.target, mapping_topic(flow.flow.source.alias)) as appender:
        appender.append([(record.encode_key(), record.encode_value()) for record in records])


def test_counts_are_those_of_what_was_produced(east: Broker, west: Broker, tmp_path: Path) -> None:
    secret = {"ssl.keystore.password": PASSWORD}
    flow = mirror(east, west, tmp_path, partitions=2, access=(secret, secret))
    with pytest.raises(NothingToReport, match="has not run yet"):
        report_flow(flow.opened, ALWAYS)
    produce(east, flow.topic, values(50), partition=0)
    produce(east, flow.topic, values(30), partition=1, transactional="commit")
    produce(east, flow.topic, values(7), partition=1, transactional="abort")
    await_settled(east, flow.topic)
    flow.run()
    commit(east, EVIL, {(flow.topic, 0): 20})
    middle_ms = max(last.time_ms for last in flow.opened.ledger.last_mappings().values()) + 1
    produce(east, flow.topic, values(11), partition=0)
    flow.run()
    report = report_flow(flow.opened, ALWAYS)
    assert report.is_good, report
    first, second = report.rows("partitions")
    assert (first["copied"], first["control"], first["aborted"], first["source"]) == (61, 0, 0, [[0, 61]])
    assert (second["copied"], second["control"], second["aborted"], second["source"]) == (30, 2, 7, [[0, 39]])
    assert {row["verdict"] for row in (first, second)} == {"verified"} and first["verified_to"] == 61
    assert report.numbers["records copied"] == 91 and report.numbers["offsets left to copy now"] == 0
    assert "91 records" in report.headline and len(report.rows("windows")) == 2
    assert [row["differ"] for row in report.rows("ledger")] == [0, 0, 0, 0]
    (group,) = (row for row in report.rows("groups") if row["group"] == EVIL)
    assert (group["position"], group["lag"]) == (20, 41)
    later = report_flow(flow.opened, Span(first_ms=middle_ms)).rows("partitions")
    assert [(row["partition"], row["copied"], row["source"]) for row in later] == [(0, 11, [[50, 61]])]
    nothing = report_flow(flow.opened, Span(end_ms=1))
    assert not nothing.is_good and nothing.headline.startswith("Nothing was copied")

    files = write_evidence(report, tmp_path / "evidence")
    text, data = files[0].read_text(), files[1].read_bytes()
    assert parsed(data) == json.loads(data) == report.as_dict() | {"after": None, "signer": None}
    assert embedded_json(text) == data
    assert PASSWORD not in text and PASSWORD.encode() not in data
    assert "<img" not in text and "&lt;img src=x onerror=alert(1)&gt;\\u202e" in text
    assert "<script" not in text and f"<title>{report.headline}</title>" in text
    assert '<td class="n">91</td>' in text and '<td class="n">30</td>' in text and "<polyline" in text


def test_what_people_decide_is_told_and_escaped(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, values(5))
    flow.run()
    reset = ResetRecord(
        topic=flow.topic,
        partition=0,
        time_ms=43,
        choice="accept-loss",
        problem="truncated",
        lost_first=5,
        lost_end=9,
        start=9,
        window="w",
        by="Eve",
        reason=EVIL,
    )
    decision = Decision(topic=flow.topic, partition=0, time_ms=42, action=Action.HOLD, offset=5, reason=EVIL, by="Ada")
    write(
        flow,
        Hold(topic=flow.topic, partition=0, offset=0, reason=EVIL, window="w", by="gate", time_ms=41),
        decision,
        reset,
    )
    report = report_flow(flow.opened, ALWAYS)
    assert not report.is_good and "1 of 1 partitions are not proven" in report.headline
    told = {each.name: each.rows for each in report.sections}
    assert (told["decisions"][0]["by"], told["decisions"][0]["reason"], told["decisions"][0]["time_ms"]) == (
        "Ada",
        EVIL,
        42,
    )
    assert (told["losses"][0]["by"], told["losses"][0]["lost_first"], told["losses"][0]["lost_end"]) == ("Eve", 5, 9)
    assert told["holds"][0]["reason"] == EVIL and EVIL in told["partitions"][0]["why"]
    text = page(report.as_dict() | {"after": None, "signer": None})
    assert "<img" not in text and text.count("&lt;img src=x onerror=alert(1)&gt;") >= 4


def test_a_report_of_what_was_declared_lost_is_not_good(east: Broker, west: Broker, tmp_path: Path) -> None:
    """All of it is verified, and a record of the source is nowhere on the target."""
    flow = mirror(east, west, tmp_path, settings={"errors.tolerance": "all", "sync.topic.configs.enabled": "false"})
    produce(east, flow.topic, values(5), partition=0)
    flow.run()
    set_config(west, flow.remote_topic, "max.message.bytes", "5000")
    produce(east, flow.topic, [Record(b"x" * 9000, b"large"), *values(5)], partition=0)
    assert flow.run().is_verified
    report = report_flow(flow.opened, ALWAYS)
    assert (report.numbers["offsets lost"], report.numbers["partitions not proven"]) == (1, 0)
    assert not report.is_good, report.headline


def test_gaps_and_a_ledger_that_differs_are_told(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    for _ in range(3):
        produce(east, flow.topic, values(10))
        flow.run()
    before = list(flow.opened.ledger.mappings(flow.topic, 0))
    with flow.opened.ledger.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE mappings SET copied = 12 WHERE source_start = 10")
    report = report_flow(flow.opened, ALWAYS)
    assert report.is_good and sum(row["differ"] for row in report.rows("ledger")) == 1
    assert any("ledger differs" in line for line in report.not_known)
    with Appender(flow.flow.target, mapping_topic(flow.flow.source.alias)) as appender:
        appender.append([(before[1].encode_key(), None)])
    report = report_flow(flow.opened, ALWAYS)
    assert not report.is_good and report.rows("partitions")[0]["source"] == [[0, 10], [20, 30]]
    assert "no mapping record covers the offsets 10 to 19" in report.rows("partitions")[0]["why"]
    delete_topic(west, flow.remote_topic)
    assert report_flow(flow.opened, ALWAYS).numbers["contradictions"] == 1


def test_without_reading_back_nothing_is_called_verified(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, settings={"window.verify": "acks"})
    produce(east, flow.topic, values(5))
    flow.run()
    report = report_flow(flow.opened, ALWAYS)
    assert "5 were not read back" in report.headline and report.numbers["records not read back"] == 5
    assert report.rows("partitions")[0]["verdict"] == "passed, but 5 records were not read back"
    reads_back = replace(flow.flow, window=replace(flow.flow.window, verify="readback"))
    later = report_flow(replace(flow.opened, flow=reads_back), ALWAYS)
    assert later.numbers["records not read back"] == 5, "the record tells, and not how windows are configured now"


def test_a_source_that_does_not_answer_is_not_known(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, values(5))
    flow.run()
    gone = replace(flow.flow, source=replace(flow.flow.source, bootstrap_servers=("127.0.0.1:1",)))
    report = report_flow(replace(flow.opened, flow=gone), ALWAYS)
    assert report.numbers["records copied"] == 5 and "offsets left to copy now" not in report.numbers
    assert any("What cluster" in line for line in report.not_known)


def test_ranges_that_touch_are_one() -> None:
    assert ranges([(0, 5), (5, 9), (12, 13)]) == [[0, 9], [12, 13]]

"""The tasks that write reports, as their operators call them: what is found, where the page is, who signed."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror.config import parse
from airmirror.config.errors import UnknownComparison
from airmirror.evidence import mirrors
from airmirror.evidence.mirrors import NothingToCompare
from airmirror.flows.audit import Audit, Range
from airmirror.flows.freezing import owners_now
from airmirror.flows.report_rows import Span
from airmirror.flows.selection import Selection
from airmirror.ledger.errors import PageTooLarge
from airmirror.on_airflow.dags.forms import interval_ms
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.tasks import audit as audit_tasks
from airmirror.on_airflow.tasks.audit import AuditFailed, OffsetRange, compare_ranges
from airmirror.on_airflow.tasks.report import (
    ClustersDiffer,
    ComparisonChoice,
    NotProven,
    SlowPattern,
    _asked,
    compare,
    report,
)
from airmirror.on_airflow.tasks.runbooks import RunbookRequest, ask, ask_undo, take
from airmirror.on_airflow.tasks.spark import BadSparkConnection
from airmirror.report.check import check
from airmirror.report.errors import BadKey
from airmirror.report.signing import name_of
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.kept import json_of
from support.topics import Record, produce


@pytest.fixture
def flow(east: Broker, west: Broker, tmp_path: Path) -> Mirror:
    """A flow that has copied 50 records."""
    found = mirror(east, west, tmp_path, ledger_url=f"sqlite:///{tmp_path / 'ledger.db'}")
    produce(east, found.topic, [Record(b"v%d" % n, b"k%d" % n, timestamp=1_700_000_000_000 + n) for n in range(50)])
    found.run()
    return found


@pytest.fixture
def place(flow: Mirror, east: Broker, west: Broker, tmp_path: Path) -> Deployment:
    """A deployment of it, with comparisons."""
    alias = flow.flow.source.alias
    lines = [
        f"clusters = {alias}, west",
        f"{alias}.bootstrap.servers = {east.bootstrap}",
        f"west.bootstrap.servers = {west.bootstrap}",
        f"{flow.flow.name}.enabled = true",
        f"{flow.flow.name}.topics = {flow.topic}",
    ]
    for name, more in (("mine", ""), ("spark", "compare.spark.spark.conn.id = submitting\n")):
        lines += [f"compare.{name}.source = {alias}", f"compare.{name}.target = west"]
        lines += [f"compare.{name}.topics = {flow.topic}", f"compare.{name}.rename = {alias}.{{topic}}", more]
    (tmp_path / "mirror.properties").write_text("\n".join(lines))
    return Deployment(
        config=tmp_path / "mirror.properties",
        ledger=f"sqlite:///{tmp_path / 'ledger.db'}",
        expectations=tmp_path,
        alert_receivers=(),
        metrics_conn_id="",
        report_conn_id="report_key",
    )


def test_whoever_may_trigger_compares_what_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\ncompare.x.source = a\ncompare.x.target = b\n"
    chosen = parse(f"{lines}compare.x.topics = orders.*\n", "f").comparison("x")
    names = ["orders", "orders-eu", "salaries"]
    monkeypatch.setattr(mirrors, "connect", lambda _: SimpleNamespace(topic_names=lambda: names))
    for asked, found in (((), names[:2]), ((".*",), names[:2]), (("orders",), names[:1])):
        assert mirrors._topics(chosen.source, _asked(chosen, ComparisonChoice(asked))) == found
    with pytest.raises(NothingToCompare):
        mirrors._topics(chosen.source, _asked(chosen, ComparisonChoice(("salaries",))))
    with pytest.raises(SlowPattern):
        _asked(chosen, ComparisonChoice(("((.|.)+)+!",)))


def test_a_runbook_is_carried_out_by_the_files_of_a_deployment(flow: Mirror, place: Deployment) -> None:
    """By each of its tasks, as they find the flow themselves."""
    with place.config.open("a") as config:
        config.write("\nfailover.quiet.ms = 0\nreplication.factor = 1\noffset.storage.replication.factor = 1\n")
    produce(flow.source, flow.topic, [Record(b"the last one")])
    place, order, pages = replace(place, report_conn_id=""), FailoverOrder(reason="INC-7", by="ada"), list[str]()
    asked = RunbookRequest(place, flow.flow.name, FAILOVER, order)
    assert "fail over (planned)?" in ask(asked, "drain").subject
    for step in FAILOVER.steps:
        take(asked, step.name, (), time.time(), "run-1", pages.append)
    assert flow.assert_equal() == 51 and owners_now(flow.opened).whole
    assert pages == [f"failovers/{flow.flow.name}/run-1.html"]


def test_reports_of_a_flow_and_of_a_comparison(
    flow: Mirror, place: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, pages, name = Ed25519PrivateKey.generate(), list[str](), flow.flow.name
    asked = RunbookRequest(place, name, FAILOVER, FailoverOrder())
    for asks in (lambda: ask(asked, "drain"), lambda: ask_undo(asked)):
        with pytest.raises(BadKey, match="no such connection"):  # before anything is done
            asks()
    with pytest.raises(BadKey, match="no such connection"):
        report(place, name, Span(), "run-0", pages.append)
    audited = partial(compare_ranges, place, name, Selection(), strict=True, show=pages.append)
    with pytest.raises(BadKey, match="no such connection"):  # whatever is wrong with what was to be read
        audited(OffsetRange(Range(flow.topic, 0, 0, 99)), "run-0")
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    monkeypatch.setenv("AIRFLOW_CONN_REPORT_KEY", json.dumps({"conn_type": "generic", "password": pem}))
    report(place, name, Span(), "run-1", pages.append)
    with pytest.raises(NotProven, match="Nothing was copied"):
        report(place, name, Span(end_ms=1), "run-2", pages.append)
    compare(place, "mine", ComparisonChoice(), "run-1", pages.append)
    compare(
        place, "mine", ComparisonChoice(first_ms=1_700_000_000_010, end_ms=1_700_000_000_030), "run-2", pages.append
    )
    audited(OffsetRange(Range(flow.topic, 0, 0, 50)), "run-1")

    too_large, real = PageTooLarge("a page", 2, 1), audit_tasks.audit

    def differing(*given: Any, **more: Any) -> Audit:
        (found,) = real(*given, **more).partitions
        return Audit((replace(found, error=BadKey("it differs", "")),), {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_tasks, "keep_document", Mock(side_effect=too_large))
        with pytest.raises(PageTooLarge):
            audited(OffsetRange(Range(flow.topic, 0, 0, 50)), "run-2")
        patch.setattr(audit_tasks, "audit", differing)
        with pytest.raises(AuditFailed, match="it differs"):  # what was found is told, whatever becomes of its page
            audited(OffsetRange(Range(flow.topic, 0, 0, 50)), "run-2")
    produce(flow.target, flow.remote_topic, [Record(b"stranger")])
    with pytest.raises(ClustersDiffer, match=f"{flow.topic}-0") as failed:
        compare(place, "mine", ComparisonChoice(), "run-3", pages.append)
    assert not failed.value.transient
    assert pages == [
        f"reports/{name}/run-1.html",
        f"reports/{name}/run-2.html",
        *(f"compare/mine/run-{number}.html" for number in (1, 2)),
        f"audits/{name}/run-1.html",
        "compare/mine/run-3.html",
    ]
    fetched = CliRunner().invoke(app, ["report", "fetch", str(tmp_path / "docs"), "--ledger", place.ledger])
    assert fetched.exit_code == 0 and "24 files that were not there" in fetched.stdout, fetched.output
    files = [tmp_path / "docs" / json_of(page).replace("->", ".") for page in pages]
    audit = files.pop(4)
    found = [json.loads(file.read_bytes()) for file in files]
    assert [each["is_good"] for each in found] == [True, False, True, True, False]
    told = json.loads(audit.read_bytes())
    assert told["is_good"] and told["sections"]["partitions"][0]["equal"] == 50
    assert check(audit, name_of(key.public_key())).wrong == ()
    assert [each["numbers"][2]["value"] for each in found[2:]] == [50, 20, 50]
    for newest in (files[1], files[4]):  # each chain by itself
        checked = check(newest, name_of(key.public_key()))
        assert checked.wrong == () and len(checked.chain) == (2 if newest is files[1] else 3)
    words = ["report", "check", str(files[0]), "--config", str(place.config)]
    spotted = CliRunner().invoke(app, words)
    assert spotted.exit_code == 0 and "digests of 1 partitions agree, and 50 records" in spotted.stdout, spotted.output
    with pytest.raises(UnknownComparison, match="those that can: mine, spark"):
        compare(place, "yours", ComparisonChoice(), "run-4", pages.append)
    monkeypatch.setenv("AIRFLOW_CONN_SUBMITTING", json.dumps({"conn_type": "spark", "host": "yarn"}))
    with pytest.raises(BadSparkConnection, match="Spark Connect only"):
        compare(place, "spark", ComparisonChoice(), "run-4", pages.append)


def test_the_form_s_times() -> None:
    context: Any = {"params": {"from": "2026-11-01T00:00:00+00:00", "to": None}, "ti": SimpleNamespace()}
    assert interval_ms(context) == (1_793_491_200_000, None)

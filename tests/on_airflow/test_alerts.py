"""Alert-driven runs on a real Airflow, with webhook bodies as Alertmanager's and Grafana's documentation give them."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from typing import Any

import httpx
import pytest

from on_airflow.conftest import RECEIVERS, AirflowFlow, AirflowUnderTest
from support.topics import Record, produce

pytestmark = pytest.mark.timeout(900)

ALERTMANAGER: dict[str, Any] = {
    "receiver": "airmirror",
    "status": "firing",
    "alerts": [
        {
            "status": "firing",
            "labels": {
                "alertname": "ReplicationLag",
                "flow": "alerted->west",
                "topic": "alerted-orders",
                "partition": "1",
                "severity": "critical",
            },
            "annotations": {"summary": "alerted-orders-1 lags by 10 minutes"},
            "startsAt": "2018-08-03T09:52:26.739266876+02:00",
            "endsAt": "0001-01-01T00:00:00Z",
            "generatorURL": "http://prometheus.example.org:9090/graph?g0.expr=probe_success+%3D%3D+0&g0.tab=1",
            "fingerprint": "1a30ba71cca2921f",
        }
    ],
    "groupLabels": {"alertname": "ReplicationLag"},
    "commonLabels": {"alertname": "ReplicationLag", "severity": "critical"},
    "commonAnnotations": {},
    "externalURL": "http://prometheus.example.org:9093",
    "version": "4",
    "groupKey": '{}/{severity="critical"}:{alertname="ReplicationLag"}',
    "truncatedAlerts": 0,
}
GRAFANA: dict[str, Any] = {
    "receiver": "My Super Webhook",
    "status": "firing",
    "orgId": 1,
    "alerts": [
        {
            "status": "firing",
            "labels": {"alertname": "Lag", "source": "grafana", "target": "west"},
            "annotations": {"description": "The flow lags", "runbook_url": "https://myrunbook.com/runbook/1234"},
            "startsAt": "2021-10-12T09:51:03.157076+02:00",
            "endsAt": "0001-01-01T00:00:00Z",
            "generatorURL": "https://play.grafana.org/alerting/1afz29v7z/edit",
            "fingerprint": "c6eadffa33fcdf37",
            "silenceURL": "https://play.grafana.org/alerting/silence/new?alertmanager=grafana&matchers=alertname%3DT2",
            "dashboardURL": "",
            "panelURL": "",
            "values": {"B": 44.23943737541908, "C": 1},
        }
    ],
    "groupLabels": {},
    "commonLabels": {"team": "blue"},
    "commonAnnotations": {},
    "externalURL": "https://play.grafana.org/",
    "version": "1",
    "groupKey": "{}:{}",
    "truncatedAlerts": 0,
    "title": "[FIRING:1]  (blue)",
    "state": "alerting",
    "message": "**Firing**",
}
ROUTES = """
from airmirror.web.app import build_app
for route in build_app().routes:
    print("ROUTE", route.path.replace("{page:path}", "index.html"), *sorted(route.methods))
"""


def post(airflow: AirflowUnderTest, body: Any, receiver: str = "alertmanager", **how: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {RECEIVERS[receiver]}"}
    return httpx.post(
        f"{airflow.stack.url}/airmirror/alerts", json=body, headers=headers, trust_env=False, timeout=120, **how
    )


def changed(body: dict[str, Any], labels: dict[str, str] | None = None, **alert: Any) -> dict[str, Any]:
    found = copy.deepcopy(body)
    found["alerts"][0].update(alert)
    found["alerts"][0]["labels"].update(labels or {})
    return found


@pytest.mark.flow("alerted")
def test_an_alert_starts_one_run_whatever_is_sent_again(flow: AirflowFlow) -> None:
    airflow = flow.under_test
    produce(flow.east, flow.topic, [Record(b"%d" % n, b"k%d" % n) for n in range(60)])
    first = post(airflow, ALERTMANAGER)
    (answer,) = first.json()["alerts"]
    assert first.status_code == 200 and answer["outcome"] == "queued: the DAG is paused", answer
    run_id = "alert__1a30ba71cca2921f__2018-08-03T07:52:26.739266+00:00"
    assert (answer["dag_id"], answer["run_id"]) == (flow.dag_id, run_id)
    # Sent again, it starts nothing; nor does its end.
    again = post(airflow, ALERTMANAGER)
    assert again.status_code == 200 and again.json()["alerts"][0]["outcome"] == "started before"
    ended = post(airflow, changed(ALERTMANAGER, status="resolved", fingerprint="other"))
    assert ended.status_code == 200 and "resolved" in ended.json()["alerts"][0]["outcome"]
    assert [run["dag_run_id"] for run in flow.client.runs(flow.dag_id)] == [run_id]
    run = flow.client.run(flow.dag_id, run_id)
    assert run["conf"] == {"topics": ["alerted-orders"], "partitions": [1]}
    assert "ReplicationLag" in run["note"] and "lags by 10 minutes" in run["note"] and "alertmanager" in run["note"]
    flow.client.unpause(flow.dag_id)
    flow.client.wait(lambda: flow.client.run(flow.dag_id, run_id)["state"] in ("running", "success"))


@pytest.mark.long  # web/test_app has what Grafana sends and what is started by it
@pytest.mark.flow("grafana")
def test_an_alert_of_grafana_starts_a_run_of_the_whole_flow(flow: AirflowFlow) -> None:
    produce(flow.east, flow.topic, [Record(b"%d" % n, b"k%d" % n) for n in range(60)])
    flow.client.unpause(flow.dag_id)
    from_grafana = post(flow.under_test, GRAFANA, "grafana")
    (answer,) = from_grafana.json()["alerts"]
    assert from_grafana.status_code == 200 and answer["outcome"] == "started"
    assert flow.client.wait_for_run(flow.dag_id, answer["run_id"]) == "success"
    assert flow.assert_equal() == 60


@pytest.mark.flow("alerted")
def test_what_is_refused_starts_nothing(airflow: AirflowUnderTest) -> None:
    before = [run["dag_run_id"] for run in airflow.client.runs("replicate.alerted.west")]
    unknown = post(airflow, changed(ALERTMANAGER, {"flow": "nowhere->west"}))
    (answer,) = unknown.json()["alerts"]
    assert unknown.status_code == 404 and answer["flow"] == "nowhere->west" and "alerted->west" in answer["known"]
    no_flow = changed(ALERTMANAGER)
    del no_flow["alerts"][0]["labels"]["flow"]
    assert post(airflow, no_flow).status_code == 404
    flow = {"flow": "alerted->west"}
    assert post(airflow, changed(ALERTMANAGER, flow | {"partition": "one"})).status_code == 422
    assert post(airflow, {"alerts": [{"status": "firing"}]}).status_code == 422
    assert post(airflow, changed(ALERTMANAGER, flow, annotations={"summary": "x" * 1_100_000})).status_code == 413
    for authorization in ("", "Bearer wrong", "Bearer", f"Basic {RECEIVERS['grafana']}"):
        refused = httpx.post(
            f"{airflow.stack.url}/airmirror/alerts",
            json=changed(ALERTMANAGER, flow),
            headers={"Authorization": authorization},
            trust_env=False,
        )
        assert refused.status_code == 401, authorization
    assert [run["dag_run_id"] for run in airflow.client.runs("replicate.alerted.west")] == before


def test_no_route_is_open(airflow: AirflowUnderTest) -> None:
    environment = {**os.environ, **airflow.stack.environment}
    done = subprocess.run([sys.executable, "-c", ROUTES], env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    routes = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("ROUTE")]
    assert {path for path, *_ in routes} >= {"/alerts", "/data-docs/index.html"}
    url = f"{airflow.stack.url}/airmirror"
    for path, *methods in routes:
        for method in methods:
            for headers in ({}, {"Authorization": "Bearer x"}):
                answer = httpx.request(method, url + path, headers=headers, trust_env=False)
                assert answer.status_code in (401, 403), (method, path)
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert httpx.get(url + path, trust_env=False).status_code == 404

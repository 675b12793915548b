"""Alerts that a real Airflow is told of; test_runs.py has the run that one starts."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from airmirror.web.app import build_app
from on_airflow.conftest import RECEIVERS, AirflowFlow, AirflowUnderTest
from support.webhooks import ALERTMANAGER, changed

pytestmark = pytest.mark.timeout(900)


@pytest.mark.flow("alerted")
def test_an_alert_starts_one_run_whatever_is_sent_again(flow: AirflowFlow) -> None:
    airflow = flow.under_test
    first = airflow.alert(ALERTMANAGER)
    (answer,) = first.json()["alerts"]
    assert first.status_code == 200 and answer["outcome"] == "queued: the DAG is paused", answer
    run_id = "alert__1a30ba71cca2921f__2018-08-03T07:52:26.739266+00:00"
    assert (answer["dag_id"], answer["run_id"]) == (flow.dag_id, run_id)
    # Sent again, it starts nothing; nor does its end.
    again = airflow.alert(ALERTMANAGER)
    assert again.status_code == 200 and again.json()["alerts"][0]["outcome"] == "started before"
    ended = airflow.alert(changed(ALERTMANAGER, status="resolved", fingerprint="other"))
    assert ended.status_code == 200 and "resolved" in ended.json()["alerts"][0]["outcome"]
    assert [run["dag_run_id"] for run in flow.client.runs(flow.dag_id)] == [run_id]
    run = flow.client.run(flow.dag_id, run_id)
    assert run["conf"] == {"topics": ["alerted-orders"], "partitions": [1]}
    assert "ReplicationLag" in run["note"] and "lags by 10 minutes" in run["note"] and "alertmanager" in run["note"]


@pytest.mark.flow("alerted")
def test_what_is_refused_starts_nothing(airflow: AirflowUnderTest) -> None:
    before = [run["dag_run_id"] for run in airflow.client.runs("replicate.alerted.west")]
    unknown = airflow.alert(changed(ALERTMANAGER, {"flow": "nowhere->west"}))
    (answer,) = unknown.json()["alerts"]
    assert unknown.status_code == 404 and answer["flow"] == "nowhere->west" and "alerted->west" in answer["known"]
    no_flow = changed(ALERTMANAGER)
    del no_flow["alerts"][0]["labels"]["flow"]
    assert airflow.alert(no_flow).status_code == 404
    flow = {"flow": "alerted->west"}
    assert airflow.alert(changed(ALERTMANAGER, flow | {"partition": "one"})).status_code == 422
    assert airflow.alert({"alerts": [{"status": "firing"}]}).status_code == 422
    assert airflow.alert(changed(ALERTMANAGER, flow, annotations={"summary": "x" * 1_100_000})).status_code == 413
    for authorization in ("", "Bearer wrong", "Bearer", f"Basic {RECEIVERS['grafana']}"):
        refused = httpx.post(
            f"{airflow.stack.url}/airmirror/alerts",
            json=changed(ALERTMANAGER, flow),
            headers={"Authorization": authorization},
            trust_env=False,
            timeout=120,
        )
        assert refused.status_code == 401, authorization
    assert [run["dag_run_id"] for run in airflow.client.runs("replicate.alerted.west")] == before


def test_no_route_is_open(airflow: AirflowUnderTest) -> None:
    every: list[Any] = build_app().routes
    routes = [(re.sub(r"{\w+(:path)?}", "reports", route.path), sorted(route.methods)) for route in every]
    assert {path for path, _ in routes} >= {"/alerts", "/pages/reports/reports/reports"}
    url = f"{airflow.stack.url}/airmirror"
    for path, methods in routes:
        for method in methods:
            for headers in ({}, {"Authorization": "Bearer x"}):
                answer = httpx.request(method, url + path, headers=headers, trust_env=False, timeout=120)
                assert answer.status_code in (401, 403), (method, path)
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert httpx.get(url + path, trust_env=False, timeout=120).status_code == 404

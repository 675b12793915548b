"""Webhook bodies as Alertmanager's and Grafana's documentation give them: each of one alert, about a flow of the tests."""

from __future__ import annotations

import copy
from typing import Any

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
            "labels": {"alertname": "Lag", "source": "gate", "target": "west"},
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


def changed(body: dict[str, Any], labels: dict[str, str] | None = None, **alert: Any) -> dict[str, Any]:
    found = copy.deepcopy(body)
    found["alerts"][0].update(alert)
    found["alerts"][0]["labels"].update(labels or {})
    return found

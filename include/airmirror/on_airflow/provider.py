"""Airmirror as Airflow's providers describe themselves: a connection type with its form, its hook, triggers and extra links.

Every Airflow command reads it at its start: it imports nothing.
"""

from __future__ import annotations

from typing import Any

CONNECTION = "airmirror_kafka"
CONNECTION_NAME = "Kafka cluster (Airmirror)"
NAME = "Airmirror"
_HERE = "airmirror.on_airflow"


def get_provider_info() -> dict[str, Any]:
    """What the entry point ``apache_airflow_provider`` answers, in the form of Airflow's provider_info.schema.json."""
    return {
        "package-name": "airmirror",
        "name": NAME,
        "description": "Kafka topics replicated between clusters in Airflow-orchestrated PySpark windows",
        "integrations": [{"integration-name": NAME, "tags": ["software"]}],
        "hooks": [{"integration-name": NAME, "python-modules": [f"{_HERE}.hook"]}],
        "triggers": [
            {"integration-name": NAME, "python-modules": [f"{_HERE}.triggers.growth", f"{_HERE}.triggers.heartbeats"]}
        ],
        "extra-links": [f"{_HERE}.dags.common.DataDocsLink", f"{_HERE}.dags.common.ReportLink"],
        "connection-types": [
            {
                "connection-type": CONNECTION,
                "hook-class-name": f"{_HERE}.hook.ClusterHook",
                "hook-name": CONNECTION_NAME,
                "ui-field-behaviour": {
                    "hidden-fields": ["schema", "port"],
                    "relabeling": {"host": "bootstrap.servers", "login": "sasl.username", "password": "sasl.password"},
                    "placeholders": {
                        "host": "broker-1:9092,broker-2:9092",
                        "extra": '{"ssl.ca.location": "/etc/airmirror/ca.pem"}',
                    },
                },
                "conn-fields": {
                    "security.protocol": {
                        "label": "security.protocol",
                        "schema": {
                            "type": ["string", "null"],
                            "enum": ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
                            "default": "PLAINTEXT",
                        },
                    },
                    "sasl.mechanism": {"label": "sasl.mechanism", "schema": {"type": ["string", "null"]}},
                },
            }
        ],
    }

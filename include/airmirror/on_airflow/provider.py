"""Airmirror as Airflow's providers describe themselves: the connection type of a Kafka cluster, with its form.

Every Airflow command reads it at its start: it imports nothing.
"""

from __future__ import annotations

from typing import Any

CONNECTION = "airmirror_kafka"
CONNECTION_NAME = "Kafka cluster (Airmirror)"


def get_provider_info() -> dict[str, Any]:
    """What the entry point ``apache_airflow_provider`` answers, in the form of Airflow's provider_info.schema.json."""
    return {
        "package-name": "airmirror",
        "name": "Airmirror",
        "description": "Kafka topics replicated between clusters in Airflow-orchestrated PySpark windows",
        "connection-types": [
            {
                "connection-type": CONNECTION,
                "hook-class-name": "airmirror.on_airflow.hook.ClusterHook",
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

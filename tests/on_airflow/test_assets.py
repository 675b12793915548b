"""Lineage from topic to topic."""

from __future__ import annotations

from airmirror.on_airflow.assets import lineage_of
from airmirror.on_airflow.work import Received


def test_lineage() -> None:
    found = lineage_of([Received("orders", "east.orders", "one:9092", "two:9092", 5, {0: (0, 5)})])
    assert [(item.namespace, item.name) for item in found.inputs] == [("kafka://one:9092", "orders")]
    assert [(item.namespace, item.name) for item in found.outputs] == [("kafka://two:9092", "east.orders")]

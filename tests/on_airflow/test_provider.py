"""Airmirror as one of Airflow's providers: its connection type, that type's form, and the button that tests a connection."""

from __future__ import annotations

import json

import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

import airmirror
from airmirror.on_airflow.hook import ClusterHook
from airmirror_local.brokers import Broker

TYPE = "airmirror_kafka"


def test_airflow_lists_it_with_its_connection_type() -> None:
    manager = ProvidersManager()
    assert manager.providers["airmirror"].version == airmirror.__version__
    hook = ProvidersManagerTaskRuntime().hooks[TYPE]
    assert hook is not None and (hook.package_name, hook.hook_name) == ("airmirror", "Kafka cluster (Airmirror)")
    assert {"port", "schema"} == set(manager.field_behaviours[TYPE]["hidden_fields"])
    assert manager.field_behaviours[TYPE]["relabeling"]["host"] == "bootstrap.servers"
    fields = {
        widget.field_name for widget in manager.connection_form_widgets.values() if widget.package_name == "airmirror"
    }
    assert fields == {"security.protocol", "sasl.mechanism"}


def given(monkeypatch: pytest.MonkeyPatch, host: str) -> ClusterHook:
    monkeypatch.setenv("AIRFLOW_CONN_EAST", json.dumps({"conn_type": TYPE, "host": host}))
    return ClusterHook("east")


def test_a_connection_that_names_no_brokers_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    good, said = given(monkeypatch, "").test_connection()
    assert not good and "bootstrap.servers" in said


def test_a_connection_is_tested_against_its_cluster(monkeypatch: pytest.MonkeyPatch, east: Broker) -> None:
    good, said = given(monkeypatch, east.bootstrap).test_connection()
    assert good and "topics" in said
    good, said = given(monkeypatch, "nowhere.invalid:9092").test_connection()
    assert not good and "nowhere.invalid" in said

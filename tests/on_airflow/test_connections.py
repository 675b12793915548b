"""Airflow connections, in their form's fields and librdkafka's names, become a cluster's settings in Java's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airmirror.config import parse
from airmirror.on_airflow.connections import BadConnection, java_settings, with_connections, with_neighbours

TEXT = """
clusters = a, b
a.airflow.conn.id = kafka_a
b.bootstrap.servers = two:9092
a->b.enabled = true
"""


def connection(monkeypatch: pytest.MonkeyPatch, extra: object) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_A", json.dumps({"conn_type": "airmirror_kafka", "extra": extra}))


def test_a_connection_stands_for_the_clusters_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    connection(monkeypatch, {"bootstrap.servers": "one:1, two:2", "client.rack": "r1"})
    configuration = parse(TEXT, "test")
    flow = with_connections(configuration, configuration.flow("a->b"))
    assert flow.source.bootstrap_servers == ("one:1", "two:2")
    assert flow.source.properties["client.rack"] == "r1"
    assert flow.target.bootstrap_servers == ("two:9092",)


def test_the_forms_fields_stand_for_settings_that_the_extra_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    form = {"conn_type": "airmirror_kafka", "host": "one:1,two:2", "login": "u", "password": "planted"}
    extra = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", "client.rack": None}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_A", json.dumps({**form, "extra": extra}))
    configuration = parse(TEXT, "test")
    source = with_connections(configuration, configuration.flow("a->b")).source
    assert source.bootstrap_servers == ("one:1", "two:2")
    assert source.properties["sasl.jaas.config"].endswith('ScramLoginModule required username="u" password="planted";')
    assert source.properties["security.protocol"] == "SASL_SSL"
    assert "client.rack" not in source.properties, "a field that was left empty"
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_A", json.dumps({**form, "extra": {"bootstrap.servers": "three:3"}}))
    assert with_connections(configuration, configuration.flow("a->b")).source.bootstrap_servers == ("three:3",)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_A", "airmirror-kafka://u:p@one:1234")
    assert with_connections(configuration, configuration.flow("a->b")).source.bootstrap_servers == ("one:1234",)


def test_other_flows_to_the_target_have_their_connections_too(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT.replace("a, b", "a, b, c") + "c.bootstrap.servers = three:1\nc->b.enabled = true\na->c.enabled = true\n"
    configuration = parse(text, "test")
    flow = configuration.flow("c->b")
    assert (
        with_neighbours(configuration, flow).flow("a->b").source.bootstrap_servers == ()
    )  # no such connection: its own error
    connection(monkeypatch, {"bootstrap.servers": "one:1"})
    found = with_neighbours(configuration, flow)
    assert found.flow("a->b").source.bootstrap_servers == ("one:1",)
    assert found.flow("a->c").source.bootstrap_servers == (), "it writes elsewhere, and is not asked"


def test_what_is_wrong_with_a_connection_is_said_without_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = parse(TEXT, "test")
    with pytest.raises(BadConnection, match="no such connection"):
        with_connections(configuration, configuration.flow("a->b"))
    connection(monkeypatch, {"sasl.password": "planted"})
    with pytest.raises(BadConnection, match=r"bootstrap\.servers") as caught:
        with_connections(configuration, configuration.flow("a->b"))
    assert "planted" not in str(caught.value)


def test_login_by_name_and_password() -> None:
    found = java_settings(
        {
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "u",
            "sasl.password": 'p"\\',
            "ssl.ca.location": "/ca.pem",
        }
    )
    assert found["sasl.mechanism"] == "SCRAM-SHA-512"
    assert found["sasl.jaas.config"].endswith('ScramLoginModule required username="u" password="p\\"\\\\";')
    assert found["ssl.truststore.location"] == "/ca.pem" and found["ssl.truststore.type"] == "PEM"


def test_a_certificate_and_its_key_in_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"ssl.certificate.location": tmp_path / "me.pem", "ssl.key.location": tmp_path / "me.key"}
    files["ssl.certificate.location"].write_text("certificate")
    files["ssl.key.location"].write_text("key")
    settings = {name: str(file) for name, file in files.items()} | {"bootstrap.servers": "one:1"}
    found = java_settings(settings)
    assert (found["ssl.keystore.certificate.chain"], found["ssl.keystore.key"]) == ("certificate", "key")
    assert not files.keys() & found.keys()
    files["ssl.key.location"].unlink()
    connection(monkeypatch, settings)
    configuration = parse(TEXT, "test")
    with pytest.raises(BadConnection, match=r"me\.key can't be read: No such file"):
        with_connections(configuration, configuration.flow("a->b"))

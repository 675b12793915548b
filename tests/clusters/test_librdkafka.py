"""Java's client settings as librdkafka's, checked by librdkafka itself where it can."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from airmirror.clusters.admin.librdkafka import _RENAMED, RANGES, librdkafka_config
from airmirror.clusters.security.model import UnsupportedClientSetting
from airmirror.config import Cluster
from airmirror.config.keys.clients import LIBRDKAFKA

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="a \\"b\\\\; c";'


def east(**properties: str) -> Cluster:
    return Cluster("east", ("a:1", "b:2"), {name.replace("_", "."): value for name, value in properties.items()})


def test_names_that_are_the_same_renamed_and_only_javas(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    cluster = east(
        client_id="mine",
        receive_buffer_bytes="-1",
        request_timeout_ms="1000",
        consumer_max_poll_records="8",
        producer_max_request_size="9000",
        producer_linger_ms="3",
    )
    common = {
        "bootstrap.servers": "a:1,b:2",
        "client.id": "mine",
        "socket.receive.buffer.bytes": "0",
        "socket.timeout.ms": "1000",
        "security.protocol": "plaintext",
    }
    assert librdkafka_config(cluster, "admin") == librdkafka_config(cluster, "consumer") == common
    assert librdkafka_config(cluster, "producer") == common | {"message.max.bytes": "9000", "linger.ms": "3"}
    assert "max.poll.records has no meaning for librdkafka" in caplog.text


@pytest.mark.parametrize("number", [-1, 0, 2**63 - 1])
def test_what_only_tunes_is_taken_whatever_java_takes(number: int) -> None:
    """As connections.max.idle.ms = -1, or request.timeout.ms = 600000: no command would run at all."""
    names = {java: _RENAMED.get(java, java) for java in LIBRDKAFKA}
    tuned = {java: str(number) for java, name in names.items() if name in RANGES}
    assert len(tuned) == len(RANGES)
    cluster = Cluster("east", ("a:1",), tuned)
    AdminClient(librdkafka_config(cluster, "admin"))
    Producer(librdkafka_config(cluster, "producer"))


def test_the_ranges_are_librdkafkas() -> None:
    own = ("reconnect.backoff.ms", "reconnect.backoff.max.ms")  # narrower: neither contradicts the other's default
    for name, allowed in RANGES.items():
        for number in allowed:
            Producer({name: str(number)})
        for number in () if name in own else (allowed[0] - 1, allowed[1] + 1):
            with pytest.raises(KafkaException, match="range"):
                Producer({name: str(number)})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "scram-sha-512"])
def test_user_and_password_come_from_the_jaas_configuration(mechanism: str) -> None:
    settings = librdkafka_config(
        east(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=PLAIN), "admin"
    )
    assert (settings["sasl.username"], settings["sasl.password"]) == ("me", 'a "b\\; c')
    assert (settings["security.protocol"], settings["sasl.mechanism"]) == ("sasl_plaintext", mechanism.upper())
    AdminClient(settings)


def test_oauthbearer_is_oidc() -> None:
    cluster = east(
        security_protocol="SASL_SSL",
        sasl_mechanism="OAUTHBEARER",
        sasl_jaas_config='X required clientId="c" clientSecret="s" scope="x";',
        sasl_oauthbearer_token_endpoint_url="https://login.example/token",
    )
    settings = librdkafka_config(cluster, "admin")
    oauthbearer = {k: v for k, v in settings.items() if k.startswith("sasl.oauthbearer.")}
    assert oauthbearer == {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "c",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "x",
        "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
    }


def test_pem_stores() -> None:
    cluster = east(
        security_protocol="SSL",
        ssl_truststore_type="PEM",
        ssl_truststore_location="/ca.pem",
        ssl_keystore_type="PEM",
        ssl_keystore_location="/me.pem",
        ssl_key_password="secret",
        ssl_endpoint_identification_algorithm="",
    )
    settings = librdkafka_config(cluster, "admin")
    assert {k: v for k, v in settings.items() if k.startswith("ssl.")} == {
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_certificates_in_the_file_and_a_pkcs12_store(tmp_path: Path) -> None:
    store = tmp_path / "me.p12"
    store.write_bytes(b"0\x82")
    settings = librdkafka_config(
        east(
            security_protocol="SSL",
            ssl_truststore_type="PEM",
            ssl_truststore_certificates="-----BEGIN…",
            ssl_keystore_type="PKCS12",
            ssl_keystore_location=str(store),
            ssl_keystore_password="secret",
        ),
        "consumer",
    )
    assert settings["ssl.ca.pem"] == "-----BEGIN…"
    assert (settings["ssl.keystore.location"], settings["ssl.keystore.password"]) == (str(store), "secret")
    assert settings["ssl.endpoint.identification.algorithm"] == "https"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"security_protocol": "SSL", "ssl_truststore_location": "/no/t.jks"}, "/no/t.jks can't be read: No such file"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "lacks username and password"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "MAGIC"}, "MAGIC is not one of PLAIN, SCRAM"),
        ({"security_protocol": "SASL_SSL", "sasl_login_class": "com.example.Login"}, "Java classes can't run here"),
    ],
)
def test_what_cannot_be_had_is_an_error_that_names_the_key(properties: dict[str, str], message: str) -> None:
    with pytest.raises(UnsupportedClientSetting, match=message) as caught:
        librdkafka_config(east(**properties), "admin")
    assert caught.value.key in str(caught.value)

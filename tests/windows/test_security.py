"""Whole windows between clusters that ask who we are, over TLS and in plain, and credentials that are taken away."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from kafka.protocol.metadata import MetadataRequest

from airmirror.clusters.admin.client import AccessDenied
from airmirror.clusters.protocol import sasl
from airmirror.clusters.protocol.connection import Connection
from airmirror.clusters.protocol.routes import Routes, patiently
from airmirror.clusters.protocol.sasl import AuthenticationFailed, transport
from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.clusters.security.tls import TlsFailed
from airmirror.clusters.security.tokens import TokenEndpointUnreachable, TokenRefused
from airmirror.config import Cluster
from airmirror.errors import AirmirrorError
from airmirror.slot import source as source_module
from airmirror.windows.errors import FlowBusy
from airmirror_local.certificates import authority
from airmirror_local.ports import free_port
from airmirror_local.spark_connect import ConnectServer
from support.environments import connect, in_process, submit
from support.faults import filled
from support.flows import mirror
from support.hostile import numbered
from support.secured import (
    PASSWORD,
    SECRET,
    SESSION_MS,
    Secured,
    give_credentials,
    jaas,
    start_secured,
    take_credentials,
    token_endpoint,
)
from support.servers import keep
from support.topics import await_settled, produce


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Secured, Secured]]:
    """Two clusters with every listener."""
    started: list[Secured] = []
    try:
        for name in ("vault", "safe"):
            started.append(start_secured(tmp_path_factory.mktemp(name), name))
        yield started[0], started[1]
    finally:
        for secured in started:
            secured.broker.kill()


@pytest.fixture(scope="module")
def vault(clusters: tuple[Secured, Secured]) -> Secured:
    return clusters[0]


@pytest.fixture(scope="module")
def tokens() -> Iterator[str]:
    with token_endpoint() as address:
        yield address


def cluster(settings: dict[str, str]) -> Cluster:
    own = dict(settings)
    return Cluster("vault", (own.pop("bootstrap.servers"),), own)


ENVIRONMENTS = [
    pytest.param("OPEN", "PLAIN", marks=pytest.mark.long),
    pytest.param("GUARDED", "PLAIN", marks=pytest.mark.long),
    pytest.param("GUARDED", "SCRAM-SHA-256", marks=pytest.mark.long),
    pytest.param("OPEN", "SCRAM-SHA-256", marks=pytest.mark.long),
    ("GUARDED", "SCRAM-SHA-512"),
    ("GUARDED", "OAUTHBEARER"),
    ("MUTUAL", ""),
]


@pytest.mark.parametrize(("listener", "mechanism"), ENVIRONMENTS)
def test_a_window_in_every_security_environment(
    clusters: tuple[Secured, Secured], tokens: str, tmp_path: Path, listener: str, mechanism: str
) -> None:
    source, target = clusters
    own = {"sasl_oauthbearer_token_endpoint_url": tokens}
    access = [each.access(listener, mechanism, **own, **mutual(each, tmp_path, listener)) for each in clusters]
    flow = mirror(source.broker, target.broker, tmp_path, partitions=3, access=(access[0], access[1]))
    produce(source.broker, flow.topic, numbered(300, size=3000))
    produce(source.broker, flow.topic, numbered(50, start=300), codec="zstd", transactional="commit")
    await_settled(source.broker, flow.topic)
    result = flow.run()
    assert result.is_verified and result.copied == 350
    assert flow.assert_equal() == 350


def mutual(secured: Secured, directory: Path, listener: str) -> dict[str, str]:
    """The client's own certificate, where the listener wants one."""
    if listener != "MUTUAL":
        return {}
    file = directory / f"{secured.broker.name}.pem"
    file.write_text(secured.client.key_pem("key secret") + secured.client.pem)
    return {"ssl_keystore_type": "PEM", "ssl_keystore_location": str(file), "ssl_key_password": "key secret"}


@pytest.mark.parametrize(("listener", "mechanism"), [("OPEN", "SCRAM-SHA-256"), ("GUARDED", "PLAIN")])
def test_a_wrong_password_is_a_final_error_that_names_everything_but_it(
    vault: Secured, listener: str, mechanism: str
) -> None:
    wrong = vault.access(listener, mechanism, sasl_jaas_config=jaas(mechanism, "wr0ng"))
    with Routes(cluster(wrong), "test") as routes, pytest.raises(AuthenticationFailed) as caught:
        routes.refresh([])
    message = str(caught.value)
    assert not caught.value.transient
    assert all(each in message for each in ("'vault'", vault.broker.listeners[listener], mechanism, "sasl.jaas.config"))
    assert "wr0ng" not in message and "wr0ng" not in repr(caught.value)


def test_a_client_that_the_token_endpoint_does_not_know(vault: Secured, tokens: str) -> None:
    settings = {
        "sasl_oauthbearer_token_endpoint_url": tokens,
        "sasl_jaas_config": "X required clientId=a clientSecret=wr0ng;",
    }
    access = cluster(vault.access("GUARDED", "OAUTHBEARER", **settings))
    with Routes(access, "test") as routes, pytest.raises(TokenRefused, match="HTTP status 401") as caught:
        routes.refresh([])
    assert not caught.value.transient and "wr0ng" not in str(caught.value)
    away = cluster(
        vault.access("GUARDED", "OAUTHBEARER", sasl_oauthbearer_token_endpoint_url=f"http://127.0.0.1:{free_port()}/")
    )
    with Routes(away, "test") as routes, pytest.raises(TokenEndpointUnreachable) as unreachable:
        routes.refresh([])
    assert unreachable.value.transient


def test_a_mechanism_that_the_cluster_does_not_have(vault: Secured) -> None:
    missing = vault.access("GUARDED", "SCRAM-SHA-256")
    transport_ = transport(cluster(missing), "consumer")
    assert isinstance(transport_.log_in, partial)
    other = replace(transport_, log_in=partial(transport_.log_in, mechanism="SCRAM-SHA-1"))
    host, _, port = missing["bootstrap.servers"].rpartition(":")
    with pytest.raises(AuthenticationFailed, match="it offers PLAIN, "):
        Connection("vault", host, int(port), "test", transport=other)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"bootstrap_servers": "localhost"}, "Hostname mismatch"),
        ({"ssl_truststore_location": "stranger"}, "unable to get local issuer certificate"),
        ({"ssl_truststore_location": ""}, "certificate"),
    ],
)
def test_a_broker_that_is_not_to_be_trusted(
    vault: Secured, tmp_path: Path, settings: dict[str, str], reason: str
) -> None:
    stranger = tmp_path / "stranger.pem"
    stranger.write_text(authority("a stranger").pem)
    port = vault.broker.listeners["GUARDED"].rpartition(":")[2]
    given = {"localhost": f"localhost:{port}", "stranger": str(stranger)}
    access = vault.access("GUARDED", "PLAIN", **{key: given.get(value, value) for key, value in settings.items()})
    with Routes(cluster(access), "test") as routes, pytest.raises(TlsFailed, match=reason) as caught:
        routes.refresh([])
    assert not caught.value.transient and "ssl.truststore" in str(caught.value)


def test_names_are_not_checked_where_the_settings_say_so(vault: Secured) -> None:
    port = vault.broker.listeners["GUARDED"].rpartition(":")[2]
    names = {"bootstrap_servers": f"localhost:{port}", "ssl_endpoint_identification_algorithm": ""}
    with Routes(cluster(vault.access("GUARDED", "PLAIN", **names)), "test") as routes:
        routes.refresh([])
        assert routes.cluster_id


@pytest.mark.parametrize("certificate", ["none", "of a stranger"])
def test_a_client_that_the_broker_does_not_trust(vault: Secured, tmp_path: Path, certificate: str) -> None:
    own = {}
    if certificate != "none":
        file = tmp_path / "stranger.pem"
        stranger = authority().signs("mirror")
        file.write_text(stranger.key_pem() + stranger.pem)
        own = {"ssl_keystore_type": "PEM", "ssl_keystore_location": str(file)}
    with Routes(cluster(vault.access("MUTUAL", **own)), "test") as routes, pytest.raises(TlsFailed) as caught:
        routes.refresh([])
    assert "ssl.keystore" in str(caught.value)


@pytest.mark.parametrize(
    ("listener", "spoken"), [("GUARDED", "PLAINTEXT"), ("OPEN", "SSL"), ("GUARDED", "SASL_PLAINTEXT")]
)
def test_another_protocol_than_the_listeners_is_told(vault: Secured, listener: str, spoken: str) -> None:
    access = vault.access(listener, "PLAIN", security_protocol=spoken)
    access.setdefault("ssl.truststore.type", "PEM")
    access.setdefault("ssl.truststore.location", str(vault.trust))
    with Routes(cluster(access), "test") as routes, pytest.raises(AirmirrorError, match=r"security\.protocol"):
        routes.refresh([])


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", pytest.param("PLAIN", marks=pytest.mark.long)])
def test_a_session_is_renewed_with_requests_under_way(
    vault: Secured, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """The broker cuts a connection whose session is over when the next request comes: this one outlives two sessions."""
    monkeypatch.setattr(sasl, "SHARE_OF_SESSION", 0.5)  # a slow machine may be late by the rest
    wanted = MetadataRequest.MetadataRequestTopic

    def requests() -> Iterator[MetadataRequest]:
        while time.monotonic() < until:
            yield MetadataRequest(topics=[wanted(name="none", topic_id=UUID(int=0))], allow_auto_topic_creation=False)

    with Routes(cluster(vault.access("EXPIRING", mechanism)), "test") as routes:
        routes.refresh([])
        until = time.monotonic() + 2.2 * SESSION_MS / 1000
        connection = routes.connection(routes.nodes[0], "fetch")
        answers = [answer.topics[0].name for answer in connection.pipelined(requests(), 12, most=5)]
        assert len(answers) > 100 and set(answers) == {"none"}
        assert connection.waiting == 0


@pytest.mark.parametrize("side", [pytest.param("source", marks=pytest.mark.long), "target"])
def test_credentials_are_taken_away_in_mid_window(
    clusters: tuple[Secured, Secured], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    """Nothing is lost, nothing comes twice, and no transaction stays open once the user has its credentials again."""
    source, target = clusters
    losing = source if side == "source" else target
    access = [each.access("EXPIRING" if each is losing else "OPEN", "SCRAM-SHA-256") for each in clusters]
    count = 8000 if side == "source" else 800  # more than what is fetched ahead
    flow = filled(source.broker, target.broker, tmp_path, count, access=(access[0], access[1]))
    monkeypatch.setattr("airmirror.windows.fence.LEASE_MS", 4000)  # who can't log in can't release the lease either
    monkeypatch.setattr(source_module, "FETCH_BYTES", 4096)
    monkeypatch.setattr(source_module, "LEAST_PARTITION_BYTES", 2048)
    end, commits = TransactionalId.end, []

    def end_and_lose(self: TransactionalId, commit: bool) -> None:
        end(self, commit)
        commits.append(commit)
        if len(commits) == 3:
            take_credentials(losing.broker)
            time.sleep(SESSION_MS / 1000)  # the sessions of all connections end: nothing tells

    monkeypatch.setattr(TransactionalId, "end", end_and_lose)
    with contextlib.ExitStack() as restored:
        restored.callback(give_credentials, losing.broker)
        restored.callback(monkeypatch.setattr, TransactionalId, "end", end)
        with pytest.raises(AuthenticationFailed) as caught:
            flow.run()
    assert not caught.value.transient and PASSWORD not in str(caught.value)
    assert caught.value.broker == losing.broker.listeners["EXPIRING"] and caught.value.mechanism in str(caught.value)
    assert len(commits) >= 3
    for attempt in patiently(30, FlowBusy, AuthenticationFailed, AccessDenied):  # the broker may not know them yet
        with attempt:
            last = flow.run()
    assert last.is_verified and 0 < last.copied < count
    assert flow.assert_equal() == 100 + count


@pytest.mark.long
@pytest.mark.parametrize("where", ["in-process", "connect", "submit"])
def test_secrets_reach_slots_and_nothing_else(
    clusters: tuple[Secured, Secured],
    stack_directory: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    where: str,
) -> None:
    """A slot logs in with what the driver read; neither a log nor the ledger nor Spark's files hold it.

    A Spark Connect server's files are looked at in ``make test``: ``on_airflow/test_runs.py``, the scheduled runs.
    """
    source, target = clusters
    stores = tmp_path / "stores"
    stores.mkdir()
    store = stores / "key.p12"
    store.write_bytes(target.client.pkcs12(PASSWORD))
    own = {"ssl_keystore_type": "PKCS12", "ssl_keystore_location": str(store), "ssl_keystore_password": PASSWORD}
    access = source.access("GUARDED", "SCRAM-SHA-512"), target.access("MUTUAL", **own)
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    flow = mirror(source.broker, target.broker, tmp_path, partitions=2, access=access, ledger_url=ledger)
    produce(source.broker, flow.topic, numbered(2000))
    if where == "connect":
        server: ConnectServer = request.getfixturevalue("connect_server")
        keep(server.process)
    environment = {
        "in-process": in_process,
        "connect": lambda: connect(server),
        "submit": lambda: submit("local[2,4]", "submit-local"),
    }[where]()
    environment.run(flow, ledger, f"secret-{where}", tmp_path)
    assert flow.assert_equal() == 2000
    config = tmp_path / f"{flow.flow.source.alias}.properties"
    assert SECRET in config.read_text()
    config.unlink()
    places = [*tmp_path.glob("*"), *(stack_directory / "spark").rglob("*")]
    written = [file for file in places if file.is_file()]
    assert {file.suffix for file in written} >= {".log", ".db"}
    key = target.client.key_pem().splitlines()[1]
    for file in written:
        content = file.read_bytes()
        assert SECRET.encode() not in content and key.encode() not in content, file

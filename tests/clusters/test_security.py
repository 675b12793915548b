"""Kafka's security settings as both clients understand them, and stores as Kafka's own clients read them."""

from __future__ import annotations

import pickle
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from airmirror.clusters.admin.librdkafka import librdkafka_config
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.sasl import AuthenticationFailed
from airmirror.clusters.security import jks
from airmirror.clusters.security.model import UnsupportedClientSetting
from airmirror.clusters.security.settings import jaas_options, security_of, self_contained
from airmirror.clusters.security.stores import identity, trusted
from airmirror.clusters.security.tls import context_of
from airmirror.config import Cluster
from airmirror_local.certificates import Authority, authority
from airmirror_local.java import find_java

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="a \\"b\\\\; c";'

STORES = Path(__file__).parent / "stores"
OLD_PKCS12 = ("-J-Dkeystore.pkcs12.legacy", "-storetype", "PKCS12")  # RC2 and SHA-1, as Java made it until 8u301


def east(**settings: str) -> Cluster:
    return Cluster("east", ("a:1",), {name.replace("_", "."): value for name, value in settings.items()})


@pytest.fixture(scope="module")
def signs() -> Authority:
    return authority()


@pytest.fixture(scope="module")
def mirror(signs: Authority) -> Authority:
    return signs.signs("mirror")


def context(**settings: str) -> ssl.SSLContext:
    return context_of("east", security_of("east", east(security_protocol="SSL", **settings).client("consumer")))


@pytest.mark.parametrize(
    ("config", "options"),
    [
        (PLAIN, {"username": "me", "password": 'a "b\\; c'}),
        ("M required a=1 b = 'two words' c=\"\";", {"a": "1", "b": "two words", "c": ""}),
        ("", {}),
    ],
)
def test_jaas_options(config: str, options: dict[str, str]) -> None:
    assert jaas_options(config) == options


def test_pkcs12_stores_are_read_whatever_they_are_called(signs: Authority, mirror: Authority, tmp_path: Path) -> None:
    """Java takes PKCS#12 for the type JKS too, which is the default."""
    (tmp_path / "trust.p12").write_bytes(signs.truststore("changeit"))
    (tmp_path / "key.jks").write_bytes(mirror.pkcs12("secret", (signs,)))
    cluster = east(
        security_protocol="SSL",
        ssl_truststore_type="PKCS12",
        ssl_truststore_location=str(tmp_path / "trust.p12"),
        ssl_truststore_password="changeit",
        ssl_keystore_location=str(tmp_path / "key.jks"),
        ssl_keystore_password="secret",
    )
    security = security_of("east", cluster.client("consumer"))
    assert security.truststore and trusted(security.truststore) == signs.pem
    assert security.keystore and identity(security.keystore) == (mirror.pem + signs.pem, mirror.key_pem(), None)
    context_of("east", security)
    settings = librdkafka_config(cluster, "producer")
    assert settings["ssl.ca.pem"] == signs.pem
    assert settings["ssl.keystore.location"] == str(tmp_path / "key.jks")


def test_pem_texts_and_an_encrypted_key(signs: Authority, mirror: Authority, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_text(f"# comments are left out\n{mirror.pem}{mirror.key_pem('secret')}")
    trust = {"ssl_truststore_type": "PEM", "ssl_truststore_certificates": f"{signs.pem}{authority().pem}"}
    found = context(**trust, ssl_keystore_type="PEM", ssl_keystore_location=str(both), ssl_key_password="secret")
    assert len(found.get_ca_certs()) == 2
    texts = {"ssl_keystore_certificate_chain": mirror.pem, "ssl_keystore_key": mirror.key_pem("secret")}
    context(**trust, **texts, ssl_keystore_type="PEM", ssl_key_password="secret")
    for wrong in ("", "other"):
        with pytest.raises(UnsupportedClientSetting, match=r"ssl\.key\.password does not open") as caught:
            context(**trust, **texts, ssl_key_password=wrong)
        assert "BEGIN" not in str(caught.value)


def _name(certificate: bytes) -> str:
    return x509.load_der_x509_certificate(certificate).subject.rfc4514_string().removeprefix("CN=")


def test_a_store_of_sun_s_other_format_is_refused_with_the_way_to_convert_it(tmp_path: Path) -> None:
    (tmp_path / "old.jceks").write_bytes(b"\xce\xce\xce\xce\0\0\0\2")
    way_out = (
        r"keytool -importkeystore -srckeystore old\.jceks -srcstoretype JCEKS -destkeystore old\.p12 -deststoretype"
    )
    for name in ("truststore", "keystore"):
        settings = {"security_protocol": "SSL", f"ssl_{name}_location": str(tmp_path / "old.jceks")}
        with pytest.raises(UnsupportedClientSetting, match=way_out):
            librdkafka_config(east(**settings), "admin")
        with pytest.raises(UnsupportedClientSetting, match=way_out), Routes(east(**settings), "test"):
            pass


def test_jks_stores_that_another_program_made() -> None:
    """Made by keytool (OpenJDK 21) once: a truststore of two certificates, a keystore whose key has a password of its own."""
    store = jks.read((STORES / "trust.jks").read_bytes(), "changeit")
    assert {_name(each) for each in store.certificates} == {"one", "two"} and not store.key
    content = (STORES / "key.jks").read_bytes()
    store = jks.read(content, "secret", "another")
    key = serialization.load_der_private_key(store.key, None)
    certificate = x509.load_der_x509_certificate(store.chain[0])
    assert isinstance(key, ec.EllipticCurvePrivateKey) and key.public_key() == certificate.public_key()
    assert jks.read(content, None, "another").key == store.key, "Java checks nothing without a password"
    for password, of_key, reason in (("wrong", None, "does not open it"), ("secret", None, "its private key")):
        with pytest.raises(jks.BadStore, match=reason):
            jks.read(content, password, of_key)


@given(st.data())
def test_a_damaged_jks_store_is_told_as_such(data: st.DataObject) -> None:
    content = (STORES / "key.jks").read_bytes()
    cut = data.draw(st.integers(0, len(content) - 1), label="cut")
    with pytest.raises(jks.BadStore):
        jks.read(content[:cut], "secret", "another")
    with pytest.raises(jks.BadStore):
        jks.read(content[:cut], None, "another")
    changed = bytearray(content)
    changed[data.draw(st.integers(0, len(content) - 21), label="where")] ^= data.draw(st.integers(1, 255), label="by")
    with pytest.raises(jks.BadStore):
        jks.read(bytes(changed), "secret", "another")
    with suppress(jks.BadStore):  # without a check of its digest it may be another store, and no other error
        jks.read(bytes(changed), None, "another")


def test_jks_stores_are_read_whatever_they_are_called() -> None:
    """By both clients, and taken along to where slots run."""
    cluster = east(
        security_protocol="SSL",
        ssl_truststore_location=str(STORES / "trust.jks"),
        ssl_truststore_password="changeit",
        ssl_keystore_type="PKCS12",
        ssl_keystore_location=str(STORES / "key.jks"),
        ssl_keystore_password="secret",
        ssl_key_password="another",
    )
    context_of("east", security_of("east", cluster.client("consumer")))
    settings = librdkafka_config(cluster, "producer")
    assert settings["ssl.ca.pem"].count("BEGIN CERTIFICATE") == 2
    assert settings["ssl.certificate.pem"].startswith("-----BEGIN CERTIFICATE-----\n")
    assert settings["ssl.key.pem"].startswith("-----BEGIN PRIVATE KEY-----\n") and "ssl.key.password" not in settings
    taken = self_contained(cluster)
    context_of("east", security_of("east", taken.client("producer")))
    wrong = east(
        security_protocol="SSL", ssl_truststore_location=str(STORES / "trust.jks"), ssl_truststore_password="changeid"
    )
    with pytest.raises(UnsupportedClientSetting, match=r"ssl\.truststore\.location.*its password does not open it"):
        librdkafka_config(wrong, "admin")


@pytest.mark.long
@pytest.mark.parametrize("options", [("-storetype", "PKCS12"), ("-storetype", "JKS"), OLD_PKCS12])
def test_stores_that_keytool_made(signs: Authority, tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "authority.pem").write_text(signs.pem)
    keytool = [str(find_java().parent / "keytool"), *options, "-storepass", "changeit"]
    trust = [
        *keytool,
        "-importcert",
        "-noprompt",
        "-alias",
        "authority",
        "-file",
        "authority.pem",
        "-keystore",
        "trust",
    ]
    key = [*keytool, "-genkeypair", "-alias", "me", "-keyalg", "EC", "-dname", "CN=me", "-keystore", "key"]
    for command in (trust, key):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    settings = {
        f"ssl_{name}store_{what}": value
        for name in ("trust", "key")
        for what, value in (("location", str(tmp_path / name)), ("password", "changeit"))
    }
    assert len(context(**settings).get_ca_certs()) == 1


def test_a_cluster_takes_its_stores_along(signs: Authority, mirror: Authority, tmp_path: Path) -> None:
    """Where slots run there are neither the files nor what reads PKCS#12."""
    (tmp_path / "trust.p12").write_bytes(signs.truststore("changeit"))
    (tmp_path / "key.p12").write_bytes(mirror.pkcs12("secret"))
    cluster = east(
        security_protocol="SSL",
        client_id="mine",
        ssl_truststore_location=str(tmp_path / "trust.p12"),
        ssl_truststore_password="changeit",
        producer_ssl_keystore_location=str(tmp_path / "key.p12"),
        producer_ssl_keystore_password="secret",
    )
    found = self_contained(cluster)
    (tmp_path / "trust.p12").unlink()
    (tmp_path / "key.p12").unlink()
    assert found.client("consumer")["client.id"] == "mine"
    for role in ("consumer", "producer", "admin"):
        security = security_of("east", found.client(role))
        context_of("east", security)
        assert security.truststore and trusted(security.truststore) == signs.pem
        assert (security.keystore is not None) == (role == "producer")
    assert mirror.key_pem() not in repr(found) and not any(
        value.endswith(".p12") for value in found.properties.values()
    )
    plain = east(client_id="mine")
    assert self_contained(plain) is plain


def test_versions_of_tls() -> None:
    assert context().minimum_version == ssl.TLSVersion.TLSv1_2
    assert context(ssl_enabled_protocols="TLSv1.3").minimum_version == ssl.TLSVersion.TLSv1_3
    assert context(ssl_enabled_protocols="TLSv1.1,TLSv1.2").maximum_version == ssl.TLSVersion.TLSv1_2
    with pytest.raises(UnsupportedClientSetting, match=r"TLSv1\.2 or TLSv1\.3"):
        context(ssl_enabled_protocols="TLSv1")


JAAS = 'X required username="me" password="s3cret";'


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sasl_mechanism": "GSSAPI"}, "Kerberos.*give Airmirror a listener"),
        ({}, "Kerberos"),
        (
            {"sasl_mechanism": "AWS_MSK_IAM"},
            "not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; MSK speaks SCRAM",
        ),
        ({"sasl_mechanism": "PLAIN", "sasl_jaas_config": "X required username=me;"}, "lacks password"),
        ({"sasl_mechanism": "SCRAM-SHA-256", "sasl_jaas_config": JAAS[:-1] + " tokenauth=true;"}, "delegation tokens"),
        ({"sasl_mechanism": "OAUTHBEARER"}, "token endpoint"),
        ({"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_endpoint_url": "file:///t"}, "token endpoint"),
        ({"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_endpoint_url": "https://x/"}, "client.id"),
        ({"sasl_client_callback_handler_class": "com.example.X"}, "Java classes can't run here"),
        ({"ssl_engine_factory_class": "com.example.X"}, "Java classes can't run here"),
    ],
)
def test_what_can_not_be_had_is_refused_before_anything_is_sent(settings: dict[str, str], message: str) -> None:
    with (
        pytest.raises(UnsupportedClientSetting, match=message) as caught,
        Routes(east(security_protocol="SASL_SSL", **settings), "test"),
    ):
        pass
    assert "s3cret" not in str(caught.value)


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(AuthenticationFailed("east", "b:9092", "PLAIN", "invalid credentials")))
    assert "'east'" in str(error) and "b:9092" in str(error) and not error.transient

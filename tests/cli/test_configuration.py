"""``airmirror config`` refuses what every other command would refuse, without asking a broker; and how it is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from airmirror.cli.main import app
from airmirror.config import load

SECURE = {"a.security.protocol": "SASL_SSL"}
SCRAM = SECURE | {"a.sasl.mechanism": "SCRAM-SHA-512"}


def config(directory: Path, **lines: str) -> Result:
    file = directory / "mirror.properties"
    base = {
        "clusters": "a, b",
        "a.bootstrap.servers": "x:1",
        "b.bootstrap.servers": "y:1",
        "a->b.enabled": "true",
    }
    file.write_text("".join(f"{key} = {value}\n" for key, value in (base | lines).items()))
    return CliRunner().invoke(app, ["config", "--config", str(file)])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (SECURE | {"a.sasl.mechanism": "GSSAPI"}, "line 6: a.sasl.mechanism: GSSAPI is not one of"),
        (SECURE, "a.sasl.mechanism: GSSAPI"),
        (SECURE | {"a.sasl.mechanism": "AWS_MSK_IAM"}, "MSK speaks SCRAM-SHA-512"),
        (SCRAM, "a.sasl.jaas.config: lacks username and password"),
        (SCRAM | {"a.sasl.jaas.config": "foo"}, "line 7: a.sasl.jaas.config: lacks username and password"),
        (
            {"a.security.protocol": "SSL", "a.ssl.truststore.location": "/none.jks"},
            "line 6: a.ssl.truststore.location: ",
        ),
        (SECURE | {"a.sasl.client.callback.handler.class": "my.Handler"}, "Java classes can't run here"),
        (
            {"b.producer.compression.type": "gzip", "b.producer.compression.gzip.level": "99"},
            "line 6: b.producer.compr",
        ),
    ],
)
def test_what_no_client_can_be_made_of_is_refused(tmp_path: Path, lines: dict[str, str], said: str) -> None:
    failed = config(tmp_path, **lines)
    assert failed.exit_code == 2 and said in failed.stderr, failed.output


def test_nobody_connects_for_a_flow_that_is_off(tmp_path: Path) -> None:
    assert config(tmp_path, **SECURE, **{"a->b.enabled": "false"}).exit_code == 0


def test_settings_that_a_protocol_does_not_use_are_told(tmp_path: Path) -> None:
    said = config(tmp_path, **{"a.sasl.client.callback.handler.class": "my.Handler"})
    assert said.exit_code == 0, said.output
    assert "a.sasl.client.callback.handler.class: not used, a.security.protocol is PLAINTEXT" in said.stdout


def test_values_are_in_one_piece_and_an_empty_list_is_told(tmp_path: Path) -> None:
    said = config(tmp_path, **{"a->b.topics": ""})
    assert said.exit_code == 0 and "a->b.topics: is empty: no topic is replicated" in said.stdout, said.output
    policy = "replication.policy.class = org.apache.kafka.connect.mirror.DefaultReplicationPolicy  # default"
    assert policy in said.stdout.splitlines()


def test_a_key_that_is_like_no_other_is_given_none_for_it() -> None:
    refused = CliRunner().invoke(app, ["config", "--explain", "nosuchkey"])
    assert refused.exit_code == 2 and "closest" not in refused.stderr


def test_a_reverse_flow_that_is_not_enabled_is_none(tmp_path: Path) -> None:
    config(tmp_path, **{"b->a.enabled": "false"})
    off = load(tmp_path / "mirror.properties")
    config(tmp_path, **{"b->a.enabled": "true"})
    on = load(tmp_path / "mirror.properties")
    assert [each.has_reverse(each.flows["a->b"]) for each in (off, on)] == [False, True]


def test_a_translation_names_a_file_in_letters_that_it_can_hold(tmp_path: Path) -> None:
    file, made = tmp_path / "мм2.json", tmp_path / "made.properties"
    of = {"source.cluster.bootstrap.servers": "x:1", "target.cluster.bootstrap.servers": "y:1", "topics": "ёж"}
    of |= {"source.cluster.alias": "a", "target.cluster.alias": "b"}
    of["connector.class"] = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
    file.write_text(json.dumps({"name": "one", "config": of}))
    done = CliRunner().invoke(app, ["config", "--from", str(file), "--write", str(made)])
    assert done.exit_code == 0, done.output
    assert made.read_text("iso-8859-1").startswith("# Translated by airmirror from \\u043c\\u043c2.json\n")

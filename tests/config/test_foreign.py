"""Configurations of MirrorMaker 2 under Strimzi and on Connect: read as they are, translated line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from airmirror.cli.main import app
from airmirror.config import Configuration, ConfigurationError, parse, properties, resolve, translated
from airmirror.config.foreign import tree
from airmirror.config.model import Setting

PACKAGE = "org.apache.kafka.connect.mirror."
V1 = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata:
  name: mirror
spec:
  version: 4.2.0
  replicas: 3
  target:
    alias: west
    bootstrapServers: west-kafka-bootstrap:9092
    groupId: mirror-group
    configStorageTopic: mirror-config
    offsetStorageTopic: mirror-offsets
    statusStorageTopic: mirror-status
    config:
      offset.storage.replication.factor: -1
  mirrors:
    - source:
        alias: east
        bootstrapServers: east-kafka-bootstrap:9092
      sourceConnector:
        tasksMax: 4
        autoRestart: {enabled: true}
        config:
          replication.factor: -1
          sync.topic.acls.enabled: "false"
          refresh.topics.interval.seconds: 60
      checkpointConnector:
        tasksMax: 1
        config:
          sync.group.offsets.enabled: yes
          refresh.topics.interval.seconds: 90
      topicsPattern: orders|payments.*
      groupsPattern: .*-service
"""
V1BETA2 = """\
# several clusters, and two directions of one resource a target
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  connectCluster: west
  clusters:
    - alias: east
      bootstrapServers: east:9092
      config: {client.dns.lookup: resolve_canonical_bootstrap_servers_only}
    - alias: north
      bootstrapServers: north:9092
    - alias: west
      bootstrapServers: west:9092
      config:
        offset.storage.topic: progress-of-mirror
        config.storage.replication.factor: 1
  mirrors:
    - sourceCluster: east
      targetCluster: west
      sourceConnector: {config: {replication.policy.class: org.apache.kafka.connect.mirror.IdentityReplicationPolicy}}
      heartbeatConnector: {config: {heartbeats.topic.replication.factor: 1}}
      topicsBlacklistPattern: "secret.*"
      groupsBlacklistPattern: "console-.*"
    - sourceCluster: north
      targetCluster: west
      sourceConnector: {tasksMax: 2}
      checkpointConnector: {}
"""


def connector(kind: str = "MirrorSourceConnector", **settings: object) -> dict[str, object]:
    clusters = {
        f"{side}.cluster.{key}": value
        for side, alias in (("source", "east"), ("target", "west"))
        for key, value in (("alias", alias), ("bootstrap.servers", f"{alias}:9092"))
    }
    named = {key.replace("__", "."): value for key, value in settings.items()}
    return {"name": kind.lower(), "connector.class": f"{PACKAGE}{kind}", **clusters, **named}


def authentication(text: str) -> str:
    """A resource whose source says who we are, below the given block."""
    block = "\n".join(f"        {line}" for line in ["authentication:", *(f"  {line}" for line in text.splitlines())])
    return V1.replace(
        "        bootstrapServers: east-kafka-bootstrap:9092\n", f"        bootstrapServers: east:1\n{block}\n"
    )


def read(text: str) -> Configuration:
    return parse(text, "mirror.yaml")


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        read(text)
    return [str(problem) for problem in caught.value.problems]


def test_a_resource_of_strimzi_is_read_as_it_is() -> None:
    configuration = read(V1)
    flow = configuration.flow("east->west")
    assert flow.enabled and flow.tasks_max == 4 and flow.replication_factor == -1
    assert flow.topics == ("orders|payments.*",) and flow.settings.sync_group_offsets_enabled
    assert flow.source.bootstrap_servers == ("east-kafka-bootstrap:9092",)
    assert flow.source.client("consumer")["security.protocol"] == "PLAINTEXT"
    assert not flow.settings.emit_heartbeats_enabled and flow.settings.emit_checkpoints_enabled
    notes = {note.key: (note.line, note.message) for note in configuration.notes}
    assert notes["spec.replicas"] == (7, "no effect: of MirrorMaker 2's pods")
    assert flow.settings.takeover_offsets_topics == ("mirror-offsets",)
    assert flow.settings.takeover_connector_name == "east->west.MirrorSourceConnector"
    assert "another value of the MirrorCheckpointConnector" in notes["east->west.refresh.topics.interval.seconds"][1]
    values = {row.key: row.value for row in resolve(configuration, "east->west")}
    assert values["refresh.topics.interval.seconds"] == "60"


def test_patterns_of_a_resource_count_before_its_connectors_configs() -> None:
    """As the operator writes them; of two for one key the one of the newer name."""
    line = "          refresh.topics.interval.seconds: 60\n"
    two = "      topicsExcludePattern: a\n      topicsBlacklistPattern: b\n"
    flow = read(V1.replace(line, f'{line}          topics: ".*"\n') + two).flow("east->west")
    assert flow.topics == ("orders|payments.*",) and flow.topics_exclude == ("a",)


def test_a_resource_of_the_older_api_with_several_mirrors() -> None:
    configuration = read(V1BETA2)
    assert [flow.name for flow in configuration.enabled] == ["east->west", "north->west"]
    east, north = configuration.enabled
    assert east.replication_policy_class.endswith("IdentityReplicationPolicy") and east.topics_exclude == ("secret.*",)
    assert east.settings.groups_exclude == ("console-.*",)
    assert east.settings.emit_heartbeats_enabled and not east.settings.emit_checkpoints_enabled
    assert north.tasks_max == 2 and north.settings.emit_checkpoints_enabled
    assert {flow.settings.takeover_offsets_topics for flow in (east, north)} == {("progress-of-mirror",)}


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (
            "type: scram-sha-512\nusername: me\npasswordSecret: {secretName: me, password: pass}",
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
                'username="me" password="secret of me/pass";',
            },
        ),
        (
            "type: plain\nusername: me\npasswordSecret: {secretName: me, password: pass}",
            {
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
                'username="me" password="secret of me/pass";',
            },
        ),
        (
            "type: tls\ncertificateAndKey: {secretName: me, certificate: user.crt, key: user.key}",
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": "secret of me/user.crt",
                "ssl.keystore.key": "secret of me/user.key",
            },
        ),
        (
            "type: oauth\ntokenEndpointUri: https://sso/token\nclientId: me\nscope: all\n"
            "clientSecret: {secretName: me, key: pass}",
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": "https://sso/token",
                "sasl.oauthbearer.client.credentials.client.id": "me",
                "sasl.oauthbearer.client.credentials.client.secret": "secret of me/pass",
                "sasl.oauthbearer.scope": "all",
            },
        ),
        (
            "type: custom\nsasl: true\nconfig: {sasl.mechanism: SCRAM-SHA-256, sasl.jaas.config: a b;}",
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": "a b;"},
        ),
    ],
)
@pytest.mark.parametrize("place", ["files", "environment"])
def test_who_we_are_with_secrets_from_files_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, settings: dict[str, str], place: str
) -> None:
    (tmp_path / "me").mkdir()
    for key in ("pass", "user.crt", "user.key"):
        (tmp_path / "me" / key).write_text(f"secret of me/{key}")
        monkeypatch.setenv(f"ME_{key.upper().replace('.', '_')}", f"secret of me/{key}")
    monkeypatch.setenv("AIRMIRROR_SECRETS_FROM", f"files:{tmp_path}" if place == "files" else place)
    configuration = read(authentication(text))
    assert configuration.clusters["east"].properties.items() >= settings.items()
    assert "secret of" not in repr(configuration)


def test_tls_with_several_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRMIRROR_SECRETS_FROM", f"files:{tmp_path}")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ca.crt").write_text(f"certificate {name}")
    trusts = (
        "tls: {trustedCertificates: [{secretName: one, certificate: ca.crt}, {secretName: two, certificate: ca.crt}]}"
    )
    text = V1.replace("        alias: east\n", f"        alias: east\n        {trusts}\n")
    properties = read(text).clusters["east"].properties
    assert properties["ssl.truststore.certificates"] == "certificate one\ncertificate two"
    assert properties["security.protocol"] == "SSL"
    assert any(
        "a pattern names no file" in each for each in problems(text.replace("certificate: ca.crt", "pattern: '*'"))
    )


def test_secrets_that_are_not_there_and_how_they_may_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    text = authentication("type: plain\nusername: me\npasswordSecret: {secretName: me, password: pass}")
    assert problems(text) == [
        "line 21: east.sasl.jaas.config: No such file or directory: /mnt/secrets/me/pass",
    ]
    monkeypatch.setenv("AIRMIRROR_SECRETS_FROM", "environment")
    assert problems(text) == ["line 21: east.sasl.jaas.config: the environment variable ME_PASS is not set"]
    monkeypatch.setenv("AIRMIRROR_SECRETS_FROM", "airflow")
    found = {setting.key: setting.value for setting in read(text).settings}
    assert found["east.airflow.conn.id"] == "east" and "west.bootstrap.servers" in found
    assert not any(key.startswith(("east.sasl", "east.bootstrap")) for key in found)
    monkeypatch.setenv("AIRMIRROR_SECRETS_FROM", "somewhere")
    assert problems(text) == [
        "AIRMIRROR_SECRETS_FROM: must be files:<directory>, environment or airflow, not 'somewhere'"
    ]


@pytest.mark.parametrize(
    ("wrong", "instead", "problem"),
    [
        ("  version: 4.2.0", "  versoin: 4.2.0", "line 6: spec.versoin: no field that Strimzi knows"),
        ("groupsPattern", "groupPattern", "line 34: spec.mirrors[0].groupPattern: no field that Strimzi knows"),
        ("tasksMax: 1", "taskMax: 1", "MirrorCheckpointConnector.taskMax: no field that Strimzi knows"),
        (
            "replication.factor: -1\n          sync",
            "transforms: route\n          sync",
            "name topics with replication.policy",
        ),
        ("refresh.topics.interval.seconds: 60", "refresh.topics.interval: 60", "unknown key; the closest known one is"),
        (
            "      sourceConnector:\n",
            "      heartbeatConnector:\n",
            "there is no MirrorSourceConnector from east to west",
        ),
        ("    - source:\n        alias: east\n", "    - source: {alias: }\n      x:\n", "lacks source.cluster.alias"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(wrong: str, instead: str, problem: str) -> None:
    assert wrong in V1
    assert any(problem in each for each in problems(V1.replace(wrong, instead)))


def test_a_login_that_cannot_be_had_is_refused() -> None:
    found = problems(authentication("type: oauth\naccessToken: {secretName: me, key: token}"))
    assert found[0].startswith("line 21: authentication.type: oauth can't be done here: log in with tls, plain,")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind: KafkaMirrorMaker2\nspec: {", "neither YAML nor JSON"),
        ("[" * 5000, "is nested too deeply"),
        ("{}", "has no connector of MirrorMaker 2"),
        ('{"name": "sink", "config": {"connector.class": "io.example.Sink"}}', "has no connector of MirrorMaker 2"),
        ("kind: KafkaMirrorMaker2\nspec: \xff", "it is no UTF-8"),
        (
            "kind: KafkaMirrorMaker2\na: &a [x]\n" + "".join(f"b{n}: &b{n} [{'*a,' * 9}]\n" for n in range(3)),
            "no connector",
        ),
    ],
)
def test_a_text_that_is_nothing_of_the_kind(text: str, reason: str) -> None:
    assert reason in problems(text)[0]


def test_no_key_begins_a_line_of_the_file() -> None:
    key = "header.converter.x\nreplication.policy.class=evil"
    settings = (Setting(key, "y", None), Setting("a->b.topics", "z", None))
    written = properties.render(settings, "mirror.json", {})
    assert {each.key: each.value for each in properties.settings(written, "f")} == {key: "y", "a->b.topics": "z"}
    assert "\na->b.topics = z\n" in written


@pytest.mark.parametrize("name", ["[a]", "{a: b}"])
def test_a_name_that_is_no_text(name: str) -> None:
    assert problems(f"kind: KafkaMirrorMaker2\n? {name}\n: b\n") == ["line 2: a name is a list or a mapping"]


def test_anchors_that_stand_for_more_than_memory_holds() -> None:
    lines = ["kind: KafkaMirrorMaker2", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    assert "has too many values" in problems("\n".join(lines))[0]
    assert tree.MOST_NODES <= 100_000


def test_a_resource_with_every_field_that_has_no_effect_is_read() -> None:
    more = "  rack: {topologyKey: zone}\n  logging: {type: inline}\n  template: {}\n  metricsConfig: {type: x}\n"
    configuration = read(V1.replace("  replicas: 3\n", more))
    assert "leaders" in next(note.message for note in configuration.notes if note.key == "spec.rack")


def shapes(connectors: list[dict[str, Any]]) -> list[str]:
    """The same connectors as Connect's REST API gives and takes them, and as Strimzi's resources."""
    resources = [
        {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "KafkaConnector",
            "metadata": {"name": each["name"]},
            "spec": {
                "class": each["connector.class"],
                "config": {
                    key: value for key, value in each.items() if key not in ("name", "connector.class", "tasks.max")
                },
                **({"tasksMax": each["tasks.max"]} if "tasks.max" in each else {}),
            },
        }
        for each in connectors
    ]
    return [
        json.dumps(connectors),
        json.dumps(
            [{"name": each["name"], "config": each, "tasks": [], "type": "source"} for each in connectors], indent=2
        ),
        json.dumps({each["name"]: {"info": {"name": each["name"], "config": each}} for each in connectors}),
        json.dumps({"apiVersion": "v1", "kind": "List", "items": resources}, indent=1),
        "---\n".join(f"{_yaml(each)}" for each in resources),
    ]


def _yaml(resource: dict[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(resource)


def test_connectors_in_every_shape_are_the_same_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "secret")
    connectors = [
        connector(
            topics="orders.*",
            tasks__max="8",
            source__cluster__security__protocol="SASL_SSL",
            source__cluster__sasl__mechanism="PLAIN",
            source__cluster__sasl__jaas__config='x required username="me" password="${env:PASSWORD}";',
            source__consumer__fetch__max__bytes=1_000_000,
            producer__override__compression__type="zstd",
        ),
        connector("MirrorCheckpointConnector", groups="a,b", tasks__max="1"),
        connector("MirrorHeartbeatConnector", emit__heartbeats__interval__seconds=5),
    ]
    found = [read(text) for text in shapes(connectors)]
    flow = found[0].flow("east->west")
    assert flow.tasks_max == 8 and flow.settings.groups == ("a", "b")
    assert flow.source.client("consumer")["fetch.max.bytes"] == "1000000"
    assert flow.target.client("producer")["compression.type"] == "zstd"
    assert flow.source.properties["sasl.jaas.config"] == 'x required username="me" password="secret";'
    assert flow.settings.emit_heartbeats_enabled and flow.settings.emit_checkpoints_enabled
    for other in found[1:]:
        assert other.flows == found[0].flows


def test_flows_of_several_connectors_share_clusters_and_keep_what_differs() -> None:
    north = connector(source__cluster__alias="north", source__cluster__bootstrap__servers="north:1")
    text = json.dumps(
        [connector(target__cluster__client__id="one"), north | connector_keys(target__cluster__client__id="two")]
    )
    configuration = read(text)
    ids = {flow.name: flow.target.client("consumer")["client.id"] for flow in configuration.enabled}
    assert ids == {"east->west": "one", "north->west": "two"}
    elsewhere = json.dumps([connector(), north | connector_keys(target__cluster__bootstrap__servers="other:1")])
    assert any("other servers for this alias" in each for each in problems(elsewhere))
    unread = json.dumps(connector(target__cluster__max__request__size="1"))
    assert "left out: no client of a connector reads it" in str(read(unread).notes)


def test_of_two_connectors_of_one_kind_none_is_left_out_in_silence() -> None:
    both = [connector(topics="a.*"), connector(topics="b.*") | {"name": "second"}]
    assert any("second: a second MirrorSourceConnector of east->west" in each for each in problems(json.dumps(both)))


def test_a_connector_that_is_not_enabled_does_nothing() -> None:
    off = read(json.dumps([connector(enabled="false"), connector("MirrorCheckpointConnector")]))
    assert not off.flows["east->west"].enabled
    groups = read(json.dumps([connector(), connector("MirrorCheckpointConnector", enabled="false", groups="a")]))
    flow = groups.flow("east->west")
    assert flow.enabled and not flow.settings.emit_checkpoints_enabled and flow.settings.groups != ("a",)
    assert "off, as its MirrorCheckpointConnector is" in str(groups.notes)


def test_the_progress_of_a_connector_on_connect() -> None:
    """Its name is known; its topics only where it has one of its own, or somebody names them."""
    own = read(json.dumps(connector(offsets__storage__topic="of-its-own"))).flow("east->west").settings
    assert own.takeover_offsets_topics == ("of-its-own",) and own.takeover_connector_name == "mirrorsourceconnector"
    without = read(json.dumps(connector()))
    assert without.flow("east->west").settings.takeover_offsets_topics == ()
    assert any("set east->west.takeover.offsets.topics to its workers'" in note.message for note in without.notes)


def connector_keys(**settings: object) -> dict[str, object]:
    return {key.replace("__", "."): value for key, value in settings.items()}


def test_a_provider_of_the_worker_that_nobody_knows_here() -> None:
    text = json.dumps(connector(source__cluster__sasl__jaas__config="${vault:path:key}"))
    assert "no config provider 'vault' is known here" in problems(text)[0]


def run(*arguments: str | Path) -> Result:
    # So wide that no line is broken, however long the path of a file is.
    return CliRunner().invoke(app, ["config", *map(str, arguments)], env={"COLUMNS": "1000"})


def test_the_command_shows_every_line_and_writes_a_file_that_means_the_same(tmp_path: Path) -> None:
    file, written = tmp_path / "mm2.yaml", tmp_path / "mirror.properties"
    file.write_text(V1)
    shown = run("--from", file, "--write", written)
    assert shown.exit_code == 0, shown.output
    assert f"airmirror config --config {written}" in shown.output
    rows = json.loads(run("--from", file, "--json").stdout)
    assert {"line": 25, "key": "east->west.replication.factor", "value": "-1", "here": "the same"} in rows
    configuration = parse(written.read_text("iso-8859-1"), str(written))
    assert configuration.flows == read(V1).flows
    assert written.stat().st_mode & 0o777 == 0o600
    again = run("--from", file, "--write", written)
    assert again.exit_code == 2 and "can't be written: File exists" in again.output


def test_nothing_is_written_where_something_cannot_be_done(tmp_path: Path) -> None:
    file, written = tmp_path / "mm2.json", tmp_path / "mirror.properties"
    file.write_text(json.dumps(connector(transforms="route", no__such__key=1)))
    shown = run("--from", file, "--write", written)
    assert shown.exit_code == 2 and "2 problems" in shown.output and "Java classes can't run here" in shown.output
    assert not written.exists()
    file.write_text("clusters = east, west\n")
    assert run("--from", file).exit_code == 2


def test_secrets_are_masked_and_need_not_be_there_to_translate(tmp_path: Path) -> None:
    file, written = tmp_path / "mm2.yaml", tmp_path / "mirror.properties"
    file.write_text(authentication("type: plain\nusername: me\npasswordSecret: {secretName: me, password: pass}"))
    shown = run("--from", file, "--write", written, "--secrets-from", "files:/secrets")
    assert shown.exit_code == 0 and "required username" not in shown.output
    assert 'password="${directory:/secrets/me:pass}";' in written.read_text()


@given(st.text(), st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1))
def test_whatever_a_value_holds_is_written_as_that_value(value: str, remark: str) -> None:
    text = properties.render(
        [Setting("a", value, 1), Setting("b", "x", 2)], "a\nb = evil", {"a": f"{remark}\nb = evil"}
    )
    import javaproperties

    assert javaproperties.loads(text) == {"a": value, "b": "x"}
    assert properties._value("a:b=c\\:") == "a:b=c\\\\:"


def test_a_translation_follows_no_reference_to_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "secret")
    found = translated(json.dumps(connector(source__cluster__ssl__key__password="${env:PASSWORD}")), "x.json")
    assert not found.problems
    assert {each.key: each.value for each in found.settings}["east.ssl.key.password"] == "${env:PASSWORD}"

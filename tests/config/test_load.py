"""A mm2.properties file as a Configuration: precedence, defaults, client settings, every problem at once."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from airmirror.config import (
    Configuration,
    ConfigurationError,
    Window,
    explain,
    load,
    parse,
    resolve,
)
from airmirror.config.errors import FlowNotEnabled, UnknownFlow
from airmirror.config.model import Setting

MINIMAL = """\
clusters = east, west
east.bootstrap.servers = east-1:9092, east-2:9092
west.bootstrap.servers = west-1:9092
"""
TWO_WAYS = f"{MINIMAL}east->west.enabled = true\nwest->east.enabled = true\n"


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        parse(text, "mm2.properties")
    return [str(problem) for problem in caught.value.problems]


def test_the_deployment_file_is_valid_and_has_one_flow() -> None:
    configuration = load(Path(__file__).parents[2] / "include" / "mirror.properties")
    assert [flow.name for flow in configuration.enabled] == ["east->west"]
    assert not configuration.notes


def test_defaults_are_mirrormakers_but_for_isolation() -> None:
    configuration = parse(f"{MINIMAL}east->west.enabled = true", "f")
    flow = configuration.flow("east->west")
    assert flow.source.bootstrap_servers == ("east-1:9092", "east-2:9092")
    assert flow.topics == (".*",)
    assert flow.topics_exclude == (r"mm2.*\.internal", r".*\.replica", "__.*")
    assert (flow.replication_factor, flow.tasks_max) == (2, None)
    assert (flow.replication_policy_separator, flow.internal_topic_separator_enabled) == (".", True)
    assert (flow.isolation_level, flow.auto_offset_reset) == ("read_committed", "earliest")
    assert flow.window == Window(120_000, None, 268_435_456, 10_000, "readback")
    settings = {row.key: row.value for row in resolve(configuration, "east->west")}
    assert settings["offset.storage.topic"] == "mm2-offsets.east.internal"
    assert "window.max.bytes" not in settings


def test_a_flow_that_is_named_is_disabled_until_enabled() -> None:
    configuration = parse(f"{TWO_WAYS}east->west.enabled = false\n", "f")
    assert list(configuration.flows) == ["east->west", "west->east"]
    assert [flow.name for flow in configuration.enabled] == ["west->east"]
    with pytest.raises(FlowNotEnabled, match=r"set east->west\.enabled = true"):
        configuration.flow("east->west")
    with pytest.raises(UnknownFlow, match="east->west, west->east"):
        configuration.flow("east->north")


def test_the_flow_wins_over_the_top_level() -> None:
    configuration = parse(f"{TWO_WAYS}topics = a, b\neast->west.topics = c\nwindow.max.bytes = 5\n", "f")
    assert configuration.flow("east->west").topics == ("c",)
    assert configuration.flow("west->east").topics == ("a", "b")
    assert configuration.flow("west->east").window.max_bytes == 5


def test_connects_keys_are_read_from_the_target_cluster_between_the_two() -> None:
    text = f"{TWO_WAYS}offset.storage.replication.factor = 1\nwest.offset.storage.replication.factor = 2\n"
    factors = {f.name: f.settings.offset_storage_replication_factor for f in parse(text, "f").enabled}
    assert factors == {"east->west": 2, "west->east": 1}
    text += "east->west.offset.storage.replication.factor = 3\n"
    assert parse(text, "f").flow("east->west").settings.offset_storage_replication_factor == 3


def test_client_settings_by_level_side_and_role() -> None:
    flow = parse(
        f"""{TWO_WAYS}
        security.protocol = SSL
        ssl.truststore.location = /top.pem
        east.ssl.truststore.location = /east.pem
        east.client.id = mine
        east.consumer.fetch.max.bytes = 1
        east.producer.linger.ms = 2
        west.producer.linger.ms = 3
        east->west.consumer.fetch.max.bytes = 4
        east->west.source.consumer.max.poll.records = 5
        east->west.target.consumer.max.poll.records = 6
        east->west.producer.override.batch.size = 7
        east->west.target.cluster.security.protocol = SASL_SSL
        east->west.source.cluster.bootstrap.servers = east-9:9092
        west->east.consumer.isolation.level = read_uncommitted
        """,
        "f",
    ).flow("east->west")
    security = {"security.protocol": "SSL", "ssl.truststore.location": "/east.pem"}
    east = {"bootstrap.servers": "east-9:9092", "client.id": "mine", **security}
    assert flow.source.client("admin") == east
    assert flow.source.client("consumer") == east | {"fetch.max.bytes": "4", "max.poll.records": "5"}
    assert flow.source.client("producer") == east | {"linger.ms": "2"}
    west = {
        "bootstrap.servers": "west-1:9092",
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": "/top.pem",
    }
    assert flow.target.client("consumer") == west | {"fetch.max.bytes": "4", "max.poll.records": "6"}
    assert flow.target.client("producer") == west | {"linger.ms": "3", "batch.size": "7"}
    assert flow.isolation_level == "read_committed"


def test_the_source_consumer_says_isolation_and_start() -> None:
    text = f"{MINIMAL}east->west.enabled = true\neast.consumer.isolation.level = read_uncommitted\n"
    flow = parse(f"{text}east->west.consumer.auto.offset.reset = latest", "f").flow("east->west")
    assert (flow.isolation_level, flow.auto_offset_reset) == ("read_uncommitted", "latest")


def test_values_are_read_as_kafka_reads_them() -> None:
    flow = parse(
        f"{MINIMAL}east->west.enabled =  TRUE \ntasks.max = +4 \ntopics = a ,b,  c\ntopics.exclude =\n", "f"
    ).flow("east->west")
    assert (flow.tasks_max, flow.topics, flow.topics_exclude) == (4, ("a", "b", "c"), ())


def test_aliases_may_hold_dots_or_be_words_of_the_format() -> None:
    text = "clusters = source, us.east\nsource.bootstrap.servers = a:1\nus.east.bootstrap.servers = b:2\n"
    flow = parse(f"{text}source->us.east.enabled = true\nsource->us.east.topics = t\n", "f").flow("source->us.east")
    assert (flow.source.alias, flow.target.alias, flow.topics) == ("source", "us.east", ("t",))
    assert flow.target.bootstrap_servers == ("b:2",)


def test_overrides_win_over_the_file() -> None:
    overrides = {"east.bootstrap.servers": "127.0.0.1:1", "east->west.window.verify": "acks"}
    configuration = parse(f"{MINIMAL}east->west.enabled = true", "f", overrides)
    assert configuration.flow("east->west").source.bootstrap_servers == ("127.0.0.1:1",)
    assert configuration.flow("east->west").window.verify == "acks"
    assert configuration.notes == ()


def test_everything_wrong_is_reported_at_once_with_its_line() -> None:
    assert problems(
        """# a comment
clusters = east, \\
   west, no/alias
east.bootstrap.servers = east-1
east->west.topcs = orders

eats.bootstrap.servers = a:1
east->wst.topics = orders
window.max.ms = 0
tasks.max = many
east->west.enabled = yes
replication.policy.separator =
enabled = true
east.consumer.fetch.max.byte = 1
east.window.max.ms = 1
transforms = mask
east->east.enabled = true
window.verify = readbak
value.converter = JsonConverter
east.security.protocol = TLS
east.consumer.auto.offset.reset = none
east->west.offset.storage.topic = my-offsets
replication.factor = 99999999999
sasl.jaas.confg = x
"""
    ) == [
        "line 2: clusters: 'no/alias' can't be an alias: only letters, digits, '.', '_' and '-' can",
        "line 2: west.bootstrap.servers: must be set, as in: broker-1:9092, broker-2:9092",
        "line 2: no/alias.bootstrap.servers: must be set, as in: broker-1:9092, broker-2:9092",
        "line 4: east.bootstrap.servers: must be host:port, separated by commas; 'east-1' is not (it is 'east-1')",
        "line 5: east->west.topcs: unknown key; the closest known one is east->west.topics",
        "line 7: eats.bootstrap.servers: unknown key; the closest known one is east.bootstrap.servers",
        "line 8: east->wst.topics: unknown key; the closest known one is east->west.topics",
        "line 9: window.max.ms: must be at least 1 (it is '0')",
        "line 10: tasks.max: must be a whole number or auto (it is 'many')",
        "line 11: east->west.enabled: must be true or false (it is 'yes')",
        "line 12: replication.policy.separator: must not be empty (it is '')",
        "line 13: enabled: has no effect here: it is read at <source>-><target>.",
        "line 14: east.consumer.fetch.max.byte: unknown key; the closest known one is east.consumer.fetch.max.bytes",
        "line 15: east.window.max.ms: has no effect here: it is read at the top level and at <source>-><target>.",
        (
            "line 16: transforms: must not be set: Java classes can't run here, and leaving them out would change "
            "the data; name topics with replication.policy.class, leave topics out with topics.exclude, change records "
            "after the copy (it is 'mask')"
        ),
        "line 17: east->east.enabled: source and target are the same cluster",
        "line 18: window.verify: must be one of readback, acks (it is 'readbak')",
        (
            "line 19: value.converter: can only be org.apache.kafka.connect.converters.ByteArrayConverter: "
            "records are copied byte for byte (it is 'JsonConverter')"
        ),
        "line 20: east.security.protocol: must be one of plaintext, ssl, sasl_plaintext, sasl_ssl (it is 'TLS')",
        "line 21: east.consumer.auto.offset.reset: must be one of earliest, latest (it is 'none')",
        (
            "line 22: east->west.offset.storage.topic: can only be mm2-offsets.east.internal: progress is kept in "
            "mm2-offsets.<source>.internal, as MirrorMaker 2 does by default (it is 'my-offsets')"
        ),
        "line 23: replication.factor: must fit the type int (32 bits) (it is '99999999999')",
        "line 24: sasl.jaas.confg: unknown key; the closest known one is sasl.jaas.config",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "clusters: must name the clusters, as in: east, west"),
        ("clusters =\n", "line 1: clusters: must name the clusters, as in: east, west"),
        (MINIMAL.replace("east, west", "east, west, east"), "line 1: clusters: names 'east' more than once"),
        ("clusters = \\u00", r"line 1: not a \u escape: \u00"),
    ],
)
def test_files_that_name_no_clusters(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"missing\.properties: can't be read: No such file"):
        load(tmp_path / "missing.properties")


def test_what_has_no_effect_is_noted_not_refused() -> None:
    configuration = parse(
        f"""{MINIMAL}east->west.enabled = true
west.replication.factor = 3
east.isolation.level = read_uncommitted
consumer.auto.offset.reset = latest
offset.flush.interval.ms = 10
west.group.id = g
topics = a
topics = b
dedicated.mode.enable.internal.rest = true
key.converter = ByteArrayConverter
key.converter.schemas.enable = false
config.properties.exclude = x
""",
        "f",
    )
    assert [str(note) for note in configuration.notes] == [
        "line 5: west.replication.factor: has no effect here: it is read at the top level and at <source>-><target>.",
        "line 6: east.isolation.level: has no effect here, as in MirrorMaker 2: write east.consumer.isolation.level",
        (
            "line 7: consumer.auto.offset.reset: has no effect here, as in MirrorMaker 2: "
            "write <cluster>.consumer.auto.offset.reset"
        ),
        "line 8: offset.flush.interval.ms: accepted, without effect: progress is committed with the records",
        "line 9: west.group.id: accepted, without effect: there is no Connect worker, Airflow and Spark do its work",
        "line 10: topics: has no effect: line 11 sets it again",
        "line 12: dedicated.mode.enable.internal.rest: accepted, without effect: Airflow and Spark distribute the work",
        "line 14: key.converter.schemas.enable: accepted, without effect: records are copied byte for byte",
    ]
    flow = configuration.flow("east->west")
    assert (flow.replication_factor, flow.isolation_level, flow.auto_offset_reset) == (2, "read_committed", "earliest")
    assert flow.topics == ("b",)


@pytest.mark.parametrize(
    "key",
    [
        "west.consumer.client.rack",
        "east->west.source.consumer.max.poll.records",
        "ssl.cipher.suites",
        "west.security.providers",
        "east.client.rack",  # nor is it read where it would be in MirrorMaker 2
        "west.admin.retries",
    ],
)
def test_a_client_setting_that_no_client_here_has_is_noted(key: str) -> None:
    (note,) = parse(f"{MINIMAL}east->west.enabled = true\n{key} = 1\n", "f").notes
    assert (note.key, note.message) == (key, "has no effect: Airmirror's clients do not have it")


def test_providers_of_one_cluster_are_noted() -> None:
    key = "west.config.providers.env.class"
    (note,) = parse(f"{MINIMAL}east->west.enabled = true\n{key} = EnvVarConfigProvider\n", "f").notes
    assert (note.key, note.message) == (key, "accepted, without effect: it is read at the top level")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("west.producer.interceptor.classes = com.x.Masking", "interceptors may change records"),
        ("east->west.producer.override.interceptor.classes = com.x.Masking", "interceptors may change records"),
        ("west.producer.transaction.timeout.ms = 60s", "must be a whole number (it is '60s')"),
        ("window.max.ms = 9223372036854775807", "must be at most 315360000000, ten years"),
        ("admin.timeout.ms = 315360000001", "must be at most 315360000000, ten years"),
        ("audit.schedule = 99999999999999 days", "an interval has a length, of ten years at most"),
    ],
)
def test_what_changes_records_or_is_out_of_all_bounds_is_refused(line: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(f"{MINIMAL}east->west.enabled = true\n{line}\n", "f")
    assert said in str(caught.value) and "line 5: " in str(caught.value)
    free = "west.producer.interceptor.classes =\noffset.flush.interval.ms = 9223372036854775807\n"
    parse(f"{MINIMAL}east->west.enabled = true\nwindow.max.ms = 315360000000\n{free}", "f")


def test_values_show_the_line_they_come_from() -> None:
    text = f"{MINIMAL}east->west.enabled = true\ntopics = a\neast.sasl.jaas.config = user password\n"
    rows = {row.key: row for row in resolve(parse(text, "f", {"window.verify": "acks"}), "east->west")}
    assert (rows["topics"].value, rows["topics"].origin) == ("a", "line 5")
    assert (rows["window.verify"].value, rows["window.verify"].origin) == ("acks", "override")
    assert (rows["window.max.ms"].value, rows["window.max.ms"].origin) == ("120000", "default")
    assert (rows["source.sasl.jaas.config"].value, rows["source.sasl.jaas.config"].origin) == ("[hidden]", "line 6")
    assert rows["target.bootstrap.servers"].value == "west-1:9092"


def test_secrets_are_in_no_representation_and_no_error() -> None:
    text = f"{MINIMAL}east->west.enabled = true\neast.ssl.key.password = planted\nsasl.jaas.config = planted\n"
    configuration = parse(text, "f")
    assert configuration.flow("east->west").source.properties["ssl.key.password"] == "planted"
    assert "planted" not in repr(configuration)
    assert "planted" not in repr(resolve(configuration, "east->west"))
    with pytest.raises(ConfigurationError) as caught:
        parse(f"{text}east.ssl.key.pasword = planted\n", "f")
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("east.sasl.jaas.config", True),
        ("ssl.keystore.password", True),
        ("ssl.keystore.key", True),
        ("ssl.keystore.certificate.chain", True),
        ("ssl.key.pem", True),
        ("sasl.oauthbearer.client.credentials.client.secret", True),
        ("sasl.oauthbearer.assertion.private.key.passphrase", True),
        ("config.providers.vault.param.token", True),
        ("sasl.oauthbearer.token.endpoint.url", False),
        ("sasl.oauthbearer.client.credentials.client.id", False),
        ("ssl.keystore.location", False),
        ("key.converter", False),
        ("bootstrap.servers", False),
    ],
)
def test_what_is_masked(key: str, secret: bool) -> None:
    assert Setting(key, "value", 1).shown == ("[hidden]" if secret else "value")
    assert Setting(key, "", 1).shown == ""
    notifier = Setting("on.failure.notifier", 'my.Hook {"token": "planted"}', 1)
    assert notifier.shown == "my.Hook [hidden]"


def test_a_configuration_can_be_pickled() -> None:
    configuration = parse(f"{TWO_WAYS}topics = a", "f")
    again: Configuration = pickle.loads(pickle.dumps(configuration))
    assert again == configuration


def test_every_key_is_explained() -> None:
    rows = {row.name: row for row in explain()}
    assert rows["topics"].here == "used"
    assert rows["window.max.ms"].default == "120000"
    assert rows["transforms"].here.startswith("refused unless it is the default: Java classes")
    assert rows["refresh.groups.interval.seconds"].here.startswith("accepted, without effect: ")
    assert rows["refresh.topics.enabled"].here == rows["topic.creation.enable"].here == "used"
    assert all(row.doc and row.scope for row in rows.values())


def test_what_comes_over_the_file_reads_no_environment_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an Airflow connection's values do: a password with such characters in it stays as it is."""
    monkeypatch.setenv("PLANTED", "a secret of the driver")
    env = "config.providers = env\nconfig.providers.env.class = EnvVarConfigProvider\n"
    text = f"{MINIMAL}east->west.enabled = true\neast.consumer.client.rack = ${{env:PLANTED}}\n{env}"
    given = {
        "east.consumer.client.id": "${env:PLANTED}",
        "east.sasl.jaas.config": 'x required password="a${env:HOME}b";',
    }
    properties = parse(text, "f", given).flow("east->west").source.properties
    assert properties["consumer.client.rack"] == "a secret of the driver"
    assert {key: properties[key.removeprefix("east.")] for key in given} == given

"""The table of keys against the ConfigDefs of Kafka 4.2.0: nothing that MirrorMaker 2 knows is unknown here."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.cli.clients import explain_clients
from airmirror.clusters.admin.librdkafka import librdkafka_config
from airmirror.config import Cluster, explain
from airmirror.config.keys import FAMILIES, KEYS, OWN, KeyType, Use
from airmirror.config.keys.clients import CLIENT, PREFIXES, ROLES
from airmirror.config.values import as_list, check

# Written by a program over the 4.2.0 jars: the ConfigDefs of MirrorMaker 2's connectors and MirrorMakerConfig, of
# Connect's DistributedConfig and SourceConnectorConfig (name, type, default), and what each kind of client knows.
KAFKA = [line.split("\t") for line in (Path(__file__).parent / "kafka_4_2_keys.tsv").read_text().splitlines()]
CONNECT = [row for row in KAFKA if row[0] == "connect"]

OUR_DEFAULTS = {
    "tasks.max": None,  # auto
    "enabled": "false",  # MirrorMakerConfig puts it in for every flow
    "config.properties.exclude": None,  # trunk's, which is longer and has no backslashes
    "target.cluster.alias": None,
    "source.cluster.alias": None,
    "key.converter": None,
    "value.converter": None,
    "header.converter": None,
    "offset.storage.topic": None,
}
"""Where Airmirror, or MirrorMaker 2's dedicated mode, differs on purpose."""


@pytest.mark.parametrize(("name", "type_", "default"), [row[1:] for row in CONNECT])
def test_every_key_of_mirrormaker_and_connect_is_known(name: str, type_: str, default: str) -> None:
    if name in CLIENT and name not in KEYS:
        return  # a client's setting, which is Kafka's own
    key = KEYS[name]
    assert key.type == type_ or (key.type, type_) in ((KeyType.STRING, "class"), (KeyType.SECONDS, "long"))
    if name not in OUR_DEFAULTS:
        expected = default.removeprefix("[").removesuffix("]") if type_ == "list" else default
        assert (key.default or "") == expected


@pytest.mark.parametrize("role", ROLES)
def test_every_client_setting_is_known(role: str) -> None:
    assert {row[1] for row in KAFKA if row[0] == role} == ROLES[role] - {"auto.include.jmx.reporter"}


def test_defaults_are_valid_values() -> None:
    for key in KEYS.values():
        if key.default is not None:
            check(key, key.default)
            assert key.type is not KeyType.LIST or all(as_list(key.default)), key.name


def test_what_has_no_effect_or_is_refused_says_why() -> None:
    for key in KEYS.values():
        assert key.reason or key.use is Use.USED, key.name
        assert key.doc, key.name


def test_our_own_keys_are_no_one_elses() -> None:
    assert not OWN & {row[1] for row in KAFKA}
    assert not [name for name in OWN if name.startswith(tuple(FAMILIES))]


# What MirrorMaker 2 has, or had, that Kafka 4.2's ConfigDefs have not: trunk's key, a connector's task settings, dedicated
# mode's defaults, and what Kafka 4.0 removed (name -> type, default).
ELSEWHERE = {
    "metric.names.formats": ("list", "legacy"),
    "task.index": ("int", None),
    "task.assigned.partitions": ("list", None),
    "task.assigned.groups": ("list", None),
    "topics.blacklist": ("list", ""),
    "groups.blacklist": ("list", ""),
    "config.properties.blacklist": ("list", ""),
    "use.incremental.alter.configs": ("string", "required"),
    "add.source.alias.to.metrics": ("boolean", "true"),
    "offset.storage.topic": ("string", "mm2-offsets.<source>.internal"),
    "config.properties.exclude": (
        "list",
        "follower.replication.throttled.replicas, leader.replication.throttled.replicas, "
        "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, log.message.timestamp.after.max.ms, "
        "message.timestamp.type, unclean.leader.election.enable, min.insync.replicas",
    ),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_other_versions_of_mirrormaker_have_is_known_too(name: str) -> None:
    assert (KEYS[name].type, KEYS[name].default) == ELSEWHERE[name]


def test_every_key_has_a_meaning_of_its_own() -> None:
    docs: dict[str, list[str]] = {}
    for key in KEYS.values():
        docs.setdefault(key.doc, []).append(key.name)
    together = ("plugin.version", "converter", "access.control", "errors.retry", "storage.replication.factor")
    alike = [names for names in docs.values() if len(names) > 1 and not any(part in names[0] for part in together)]
    assert alike == []


def test_everything_that_is_explained_says_what_it_does_here() -> None:
    rows = [*explain(), *explain_clients()]
    assert {row.name for row in rows} >= {*KEYS, *CLIENT, *PREFIXES, *(f"{prefix}…" for prefix in FAMILIES)}
    for row in rows:
        what, _, why = row.here.partition(": ")
        assert row.doc and row.scope, row.name
        assert why or what.startswith("used"), row.name


def test_client_settings_without_effect_are_those_that_are_left_out() -> None:
    given = {name: "1" for name in ROLES["consumer"] - {"security.protocol", "config.providers"}}
    here = {row.name: row.here for row in explain_clients()}
    kept = {name for name in given if not here[name].startswith(("has no effect", "refused"))}
    alone = {name: librdkafka_config(Cluster("east", ("one:9092",), {name: "1"}), "consumer") for name in given}
    nothing = librdkafka_config(Cluster("east", ("one:9092",), {}), "consumer")
    taken = {name for name, settings in alone.items() if settings != nothing}
    assert taken <= kept and "client.id" in taken and not kept & {"interceptor.classes", "client.rack"}

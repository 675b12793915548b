"""The table of keys against the ConfigDefs of Kafka 4.2.0: nothing that MirrorMaker 2 knows is unknown here."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.config.keys import CLIENT, FAMILIES, KEYS, OWN, ROLES, Type, Use
from airmirror.config.values import as_list, check

# Written by a program over the 4.2.0 jars: the ConfigDefs of MirrorMaker 2's connectors and MirrorMakerConfig, of
# Connect's DistributedConfig and SourceConnectorConfig (name, type, default), and what each kind of client knows.
KAFKA = [line.split("\t") for line in (Path(__file__).parent / "kafka_4_2_keys.tsv").read_text().splitlines()]
CONNECT = [row for row in KAFKA if row[0] == "connect"]

OUR_DEFAULTS = {
    "tasks.max": None,  # as many as Spark runs at once
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
    assert key.type == type_ or (key.type, type_) == (Type.STRING, "class")
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
            assert key.type is not Type.LIST or all(as_list(key.default)), key.name


def test_what_has_no_effect_or_is_refused_says_why() -> None:
    for key in KEYS.values():
        assert key.reason or key.use in (Use.USED, Use.LATER), key.name
        assert key.doc, key.name


def test_our_own_keys_are_no_one_elses() -> None:
    assert not OWN & {row[1] for row in KAFKA}
    assert not [name for name in OWN if name.startswith(tuple(FAMILIES))]

"""Typed settings: a field for each key that is read, of the key's type, with the value that counts."""

from __future__ import annotations

import pickle
from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from airmirror.config import ConfigurationError, Settings, parse
from airmirror.config.keys import KEYS, KeyType
from airmirror.config.settings import KEY_OF
from airmirror.config.values import as_list

CLUSTERS = (
    "clusters = east, west\neast.bootstrap.servers = e:1\nwest.bootstrap.servers = w:1\neast->west.enabled = true\n"
)
TYPES: dict[KeyType, Any] = {KeyType.BOOLEAN: bool, KeyType.LIST: tuple[str, ...]}
TYPES |= dict.fromkeys((KeyType.SHORT, KeyType.INT, KeyType.LONG), int) | {KeyType.SECONDS: float}


def settings(*lines: str, overrides: dict[str, str] | None = None) -> Settings:
    return parse(CLUSTERS + "\n".join(lines), "test", overrides).flow("east->west").settings


def test_every_field_has_the_type_of_its_key() -> None:
    hints = get_type_hints(Settings)
    for field in fields(Settings):
        key = KEY_OF[field.name]
        expected = TYPES.get(key.type, str)
        optional = key.default is None and key.type is not KeyType.LIST
        assert hints[field.name] == (expected | None if optional else expected), key.name


def test_fields_are_told_apart() -> None:
    names = [name.replace(".", "_").replace("-", "_") for name in KEYS]
    assert len(set(names)) == len(names)


def test_the_tables_defaults_count_where_nothing_is_set() -> None:
    found = settings()
    assert found == Settings.of({})
    assert (found.admin_timeout_ms, found.aggregate, found.retention_days) == (60_000, False, None)
    assert found.groups_exclude == as_list(KEYS["groups.exclude"].default or "") and found.decide_users == ()
    assert pickle.loads(pickle.dumps(found)) == found


def test_the_flow_wins_over_the_top_level_and_an_override_over_both() -> None:
    lines = ("offset.lag.max = 1", "east->west.offset.lag.max = 2 ", "errors.tolerance = all ", "groups = a , b")
    found = settings(*lines)
    assert (found.offset_lag_max, found.errors_tolerance, found.groups) == (2, "all", ("a", "b"))
    assert settings(*lines, overrides={"east->west.offset.lag.max": "3"}).offset_lag_max == 3


@pytest.mark.parametrize(
    "line",
    [
        "aggregate = yes",
        "window.idle.ms = -1",
        "offset.storage.partitions = many",
        "errors.tolerance = some",
        "sync.group.offsets.interval.seconds = 0.49",
        "sync.group.offsets.interval.seconds = -1",
        "sync.group.offsets.interval.seconds = inf",
    ],
)
def test_a_value_of_another_type_is_refused_when_the_file_is_read(line: str) -> None:
    with pytest.raises(ConfigurationError, match=line.split()[0]):
        settings(f"east->west.{line}")


def test_auto_is_a_word_for_the_number_of_slots_that_is_not_set() -> None:
    assert [
        parse(f"{CLUSTERS}{line}", "t").flow().tasks_max for line in ("", "tasks.max =  auto ", "tasks.max = 1")
    ] == [
        None,
        None,
        1,
    ]
    for bad in ("0", "automatic", "Auto", ""):
        with pytest.raises(ConfigurationError, match=r"tasks\.max: must be .* or auto"):
            settings(f"tasks.max = {bad}")


def test_a_number_fits_its_type_to_the_last_one() -> None:
    flow = parse(f"{CLUSTERS}tasks.max = {2**31 - 1}\nwindow.max.bytes = {2**63 - 1}", "test").flow()
    assert (flow.tasks_max, flow.window.max_bytes) == (2**31 - 1, 2**63 - 1)
    for line in (f"tasks.max = {2**31}", f"window.max.ms = {2**63}", "tasks.max = 0", f"tasks.max = {-(2**31) - 1}"):
        with pytest.raises(ConfigurationError, match=line.split()[0]):
            settings(line)


@pytest.mark.parametrize(("value", "seconds"), [("0.5", 0.5), (" 2 ", 2.0), ("60.25", 60.25)])
def test_groups_are_moved_every_so_many_seconds_or_parts_of_one(value: str, seconds: float) -> None:
    assert settings(f"sync.group.offsets.interval.seconds = {value}").sync_group_offsets_interval_seconds == seconds


@pytest.mark.parametrize("what", ["refresh.topics", "sync.topic.configs", "sync.topic.acls", "emit.checkpoints"])
def test_an_interval_below_0_switches_off_as_in_mirrormaker_2(what: str) -> None:
    name = f"{what.replace('.', '_')}_enabled"
    found = [getattr(settings(f"{what}.interval.seconds = {seconds}"), name) for seconds in (-1, 0, 1)]
    assert found == [False, True, True]


def test_what_may_hold_a_secret_is_not_shown() -> None:
    assert "hush" not in repr(settings('on.failure.notifier = some.Notifier {"token": "hush"}'))

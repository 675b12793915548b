"""The advice on MirrorMaker 2's tuning: of keys that exist, and for the keys of a file."""

from __future__ import annotations

import re

from airmirror.config import parse
from airmirror.config.keys import KEYS
from airmirror.config.keys.clients import CLIENT
from airmirror.config.tuning import ADVICE, advised

FILE = """clusters = east, west
east.bootstrap.servers = one:9092
west.bootstrap.servers = two:9092
east->west.enabled = true
tasks.max = 8
east.consumer.fetch.max.bytes = 50000000
east->west.producer.override.linger.ms = 100
west.producer.batch.size = 500000
west.request.timeout.ms = 60000
east->west.window.slot.bytes = 1000000
"""


def test_the_advice_names_keys_that_exist() -> None:
    keys = [key for advice in ADVICE for key in advice.keys]
    assert len(keys) == len(set(keys)) and set(keys) <= KEYS.keys() | CLIENT
    for advice in ADVICE:
        for named in re.findall(
            r"\b(?:window|throttle|offset|verify)\.[a-z.]+[a-z]", f"{advice.instead} {advice.here}"
        ):
            assert named in KEYS, named


def test_what_is_said_of_a_file() -> None:
    said = [(each.line, each.key) for each in advised(parse(FILE, "f"))]
    assert said == [
        (5, "tasks.max"),
        (6, "east.consumer.fetch.max.bytes"),
        (7, "east->west.producer.override.linger.ms"),
        (8, "west.producer.batch.size"),
        (9, "west.request.timeout.ms"),
    ]
    first = str(next(iter(advised(parse(FILE, "f")))))
    assert first.startswith("line 5: tasks.max: A window takes a slot for each 64 MiB") and "It costs a core" in first

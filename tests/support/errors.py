"""One example of every error of the product, with sample facts."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from uuid import UUID

import airmirror
from airmirror.clusters.admin.acls import Acl
from airmirror.config import Problem, parse
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.slot.errors import of_flow

FLOW = "east->west"
_LINES = "clusters=east,west\neast.bootstrap.servers=east:9092\nwest.bootstrap.servers=west:9092\n"
_CONFIGURED = parse(f"{_LINES}{FLOW}.enabled=true", "test").flow(FLOW)
_SAMPLES: dict[str, Any] = {
    "str": "sample",
    "int": 7,
    "float": 1.5,
    "bool": True,
    "int | None": 7,
    "float | None": None,
    "str | None": "sample",
    "tuple[str, ...]": ("one", "two"),
    "tuple[str, str]": ("one", "two"),
    "tuple[int, ...]": (1, 2),
    "tuple[tuple[int, ...], ...]": ((1, 2, 3),),
    "bytes": b"b",
    "tuple[tuple[str, int, int], ...]": (("orders", 0, 7),),
    "TopicPartition": TopicPartition("orders", 0),
    "tuple[Problem, ...]": (Problem(3, "key", "message"),),
    "UUID": UUID(int=1),
    "Mapping[TopicPartition, int]": {TopicPartition("orders", 0): 7},
    "Mapping[TopicPartition, str]": {TopicPartition("orders", 0): "sample"},
    "Acl": Acl(topic="orders", pattern="LITERAL", principal="User:ann", host="*", operation="READ", permission="ALLOW"),
}
_NAMED = {
    "flow": FLOW,
    "reverse": "west->east",
    "topic": "orders with a blank",
    "cluster": "east",
    "runbook": "failover",
    "way": "planned",
}


def subclasses(cls: type[AirmirrorError]) -> set[type[AirmirrorError]]:
    return {cls}.union(*(subclasses(each) for each in cls.__subclasses__()))


def all_errors() -> list[type[AirmirrorError]]:
    for module in pkgutil.walk_packages(airmirror.__path__, "airmirror."):
        importlib.import_module(module.name)
    mine = (each for each in subclasses(AirmirrorError) if each.__module__.startswith("airmirror."))
    return sorted(mine, key=lambda each: (each.__module__, each.__name__))


def made_up(name: str, kind: str) -> Any:
    """Make up a fact of this name and type."""
    return _NAMED[name] if name in _NAMED and kind == "str" else _SAMPLES[kind]


def sample(
    error: type[AirmirrorError],
    returns: Mapping[str, str] = MappingProxyType({}),
    fact: Callable[[str, str], Any] = made_up,
) -> AirmirrorError:
    """One with sample facts, told its flow as where it meets it; ``returns``: the topics that return by this flow."""
    if not dataclasses.is_dataclass(error):
        return error()
    facts = {field.name: fact(field.name, str(field.type)) for field in dataclasses.fields(error)}
    made = of_flow(error(**facts), replace(_CONFIGURED, returns=returns))
    assert made is not None
    return made

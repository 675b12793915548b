"""Values of any type as large installations have them: long names, offsets of twelve digits."""

from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum
from typing import Any
from uuid import UUID

from airmirror.config.errors import UnknownFlow
from airmirror.errors import AirmirrorError

NAME = "orders.of-the-shop.in-the-east.eu.v2-2026"
OFFSET, PARTITION, MOMENT = 123_456_789_012, 1_234, 1_795_000_000_000
SIMPLE: dict[Any, Any] = {
    str: NAME,
    int: OFFSET,
    float: 12_345.6,
    bool: True,
    bytes: b"b",
    UUID: UUID(int=1),
    types.NoneType: None,
    AirmirrorError: UnknownFlow("file", NAME, ()),
    Any: NAME,
}


def value(kind: Any, name: str = "") -> Any:
    """A large value of a type, as its field's name wants it."""
    if kind is int and (name == "partition" or name.endswith("_ms")):
        return PARTITION if name == "partition" else MOMENT
    if kind in SIMPLE:
        return SIMPLE[kind]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return inner[0]
    if origin in (typing.Union, types.UnionType):
        return value(inner[0], name)
    if origin is tuple and inner[-1] is not ...:
        return tuple(map(value, inner))
    if len(inner) == 2 and origin is not tuple:
        return {value(inner[0]): value(inner[1])}
    if inner:
        return (tuple if origin is tuple else list)([value(inner[0])])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    return made(kind)


def made(kind: Any, **given: Any) -> Any:
    """A dataclass, or a named tuple, full of large values."""
    if not (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")):
        return None  # no table shows it
    hints = typing.get_type_hints(kind)
    fields = (
        [each.name for each in dataclasses.fields(kind) if each.init]
        if dataclasses.is_dataclass(kind)
        else kind._fields
    )
    return kind(**{name: given[name] if name in given else value(hints[name], name) for name in fields})

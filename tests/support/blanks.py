"""Blanks for facts, which print as the name of their field: ``<topic>``."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from airmirror.clusters.admin.acls import Acl
from airmirror.config import Problem
from airmirror.partitions import TopicPartition


class Count(int):
    """A number that prints as its name, and so does what is counted from it."""

    def __new__(cls, name: str) -> Count:
        made = super().__new__(cls, 7)
        made.name = name
        return made

    name: str

    def __format__(self, spec: str) -> str:
        return f"<{self.name}>"

    def __str__(self) -> str:
        return f"<{self.name}>"

    __repr__ = __str__

    def __add__(self, other: int) -> Count:
        return Count(f"{self.name} + {other}")

    def __sub__(self, other: int) -> Count:
        return Count(f"{self.name} - {getattr(other, 'name', other)}")


class Seconds(float):
    """A time that prints as its name."""

    def __new__(cls, name: str) -> Seconds:
        made = super().__new__(cls, 1.5)
        made.name = name
        return made

    name: str

    def __format__(self, spec: str) -> str:
        return f"<{self.name}>"

    __str__ = __repr__ = lambda self: f"<{self.name}>"


class Bytes(bytes):
    """Bytes that print as their name."""

    def __new__(cls, name: str) -> Bytes:
        made = super().__new__(cls, b"b")
        made.name = name
        return made

    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"


def blank(name: str, kind: str) -> Any:
    """Make a fact that prints as the name of its field, for one of this type; one of several as the name without its s."""
    name = name.replace("_", " ")
    one = name.removesuffix("s")
    text, count, partition = f"<{name}>", Count(name), TopicPartition("<topic>", Count("partition"))
    return {
        "str": text,
        "int": count,
        "float": Seconds(name),
        "bool": True,
        "int | None": count,
        "float | None": None,
        "str | None": text,
        "tuple[str, ...]": (f"<{one}>", "…"),
        "tuple[str, str]": ("<source id>", "<target id>"),
        "tuple[int, ...]": (Count(one),),
        "tuple[tuple[int, ...], ...]": ((Count(one),),),
        "bytes": Bytes(name),
        "tuple[tuple[str, int, int], ...]": (("<topic>", Count("partition"), Count("number")),),
        "TopicPartition": partition,
        "tuple[Problem, ...]": (Problem(Count("line"), "<key>", "<problem>"),),
        "UUID": UUID(int=1),
        "Mapping[TopicPartition, int]": {partition: Count(one)},
        "Mapping[TopicPartition, str]": {partition: f"<{one}>"},
        "Acl": Acl(
            topic="<topic>",
            pattern="LITERAL",
            principal="<principal>",
            host="<host>",
            operation="<operation>",
            permission="ALLOW",
        ),
    }[kind]

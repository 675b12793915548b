"""Records declared as fields: one declaration encodes, decodes and documents a record of an internal topic.

A key or a value is its fields one after the other, in Kafka's big-endian protocol types (Kafka protocol guide). Fields of a
fixed size that follow one another are packed at once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import groupby
from typing import Any, ClassVar, Self
from uuid import UUID

from airmirror.wire.primitives import MalformedRecord, Reader, string, texts


@dataclass(frozen=True)
class FieldType:
    """A protocol type by its name in the documentation. ``code``: its struct code; None: ``read`` and ``write`` do it."""

    name: str
    code: str | None = None
    write: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] = lambda value: value


INT8, INT16, INT32, INT64 = (FieldType(f"INT{8 * struct.calcsize(code)}", code) for code in "bhiq")
UUID_ID = FieldType("UUID", "16s", write=lambda value: value.bytes, read=lambda value: UUID(bytes=value))
BYTES_16 = FieldType("16 bytes", "16s")
STRING = FieldType("STRING", write=string, read=Reader.string)
TEXTS = FieldType("TEXTS", write=texts, read=Reader.texts)
# No more than this is kept.
REASON = FieldType("STRING", write=lambda value: string(value[:10_000]), read=Reader.string)


def enumerated(values: type[IntEnum], what: str) -> FieldType:
    """An INT8 that is one of ``values``; ``what`` names it where it is another."""

    def read(number: int) -> IntEnum:
        if number not in values.__members__.values():
            raise MalformedRecord(f"{what} {number} is not known")
        return values(number)

    shown = ", ".join(f"{value.value} {value.name.lower().replace('_', ' ')}" for value in values)
    return FieldType(f"INT8 ({shown})", "b", read=read)


@dataclass(frozen=True)
class Field:
    """A record's attribute and its type."""

    name: str
    type: FieldType

    def __str__(self) -> str:
        return f"{self.type.name} {self.name}"

    def write(self, record: object) -> bytes:
        """The field's bytes, if it has no fixed size."""
        return bytes(self.type.write(getattr(record, self.name)))

    def read(self, reader: Reader, into: dict[str, Any]) -> None:
        """Read it; what was read before is in ``into``."""
        into[self.name] = self.type.read(reader)


class Together(Field):
    """TEXTS with a fixed count: as many attributes in one; ``name`` has them all, as they are documented."""

    def write(self, record: object) -> bytes:
        return texts([getattr(record, name) for name in self.name.split(", ")])

    def read(self, reader: Reader, into: dict[str, Any]) -> None:
        names, found = self.name.split(", "), reader.texts()
        if len(found) != len(names):
            raise MalformedRecord(f"{len(found)} texts where there are {len(names)}")
        into.update(zip(names, found, strict=True))


class Fixed:
    """Fields of a fixed size that follow one another."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._struct = struct.Struct(">" + "".join(item.type.code or "" for item in fields))
        self._fields = [(item.name, item.type.write, item.type.read) for item in fields]

    def write(self, record: object) -> bytes:
        return self._struct.pack(*[write(getattr(record, name)) for name, write, _ in self._fields])

    def read(self, reader: Reader, into: dict[str, Any]) -> None:
        values = self._struct.unpack(reader.take(self._struct.size))
        for (name, _, read), value in zip(self._fields, values, strict=True):
            into[name] = read(value)


@dataclass(frozen=True)
class Fields:
    fields: tuple[Field, ...]
    _parts: tuple[Field | Fixed, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_parts", tuple(_parts(self.fields)))

    def __str__(self) -> str:
        return ", ".join(map(str, self.fields)) or "nothing"

    def encode(self, record: object) -> bytes:
        return b"".join([part.write(record) for part in self._parts])

    def decode(self, reader: Reader, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Attributes by name, after those that are ``known``. Raises MalformedRecord."""
        found = dict(known or {})
        for part in self._parts:
            part.read(reader, found)
        return found


def _parts(fields: Sequence[Field]) -> Iterator[Field | Fixed]:
    for is_fixed, group in groupby(fields, key=lambda item: item.type.code is not None):
        if is_fixed:
            yield Fixed(list(group))
        else:
            yield from group


def fields(**types: FieldType) -> Fields:
    """Fields by the names of a record's attributes."""
    return Fields(tuple(Field(name, kind) for name, kind in types.items()))


class Declared:
    """A record whose key and value are declared; ``version`` is the first INT16 of its value, None: it has none."""

    key_fields: ClassVar[Fields]
    value_fields: ClassVar[Fields]
    version: ClassVar[int | None] = 0

    def encode_key(self) -> bytes:
        return self.key_fields.encode(self)

    def encode_value(self) -> bytes:
        version = b"" if self.version is None else struct.pack(">h", self.version)
        return version + self.value_fields.encode(self)

    @classmethod
    def decode_key(cls, key: bytes) -> dict[str, Any]:
        """The attributes that are in the key: all that a deleted record has. Raises MalformedRecord."""
        reader = Reader(key)
        found = cls.key_fields.decode(reader)
        reader.end()
        return found

    @classmethod
    def decode(cls, key: bytes, value: bytes) -> Self:
        """Raises MalformedRecord, also for a version that is not known (as MirrorMaker 2 from KAFKA-20659 on)."""
        known = cls.decode_key(key)
        reader = Reader(value)
        if cls.version is not None and (version := reader.int16()) != cls.version:
            raise MalformedRecord(f"version {version} of a {cls.__name__.lower()} is not known")
        found = cls.value_fields.decode(reader, known)
        reader.end()
        return cls(**found)


class MappingTopicRecord(Declared):
    """A record of the mapping topic: its key begins with its kind."""

    kind: ClassVar[int]

    def encode_key(self) -> bytes:
        return struct.pack(">b", self.kind) + super().encode_key()

"""Kafka's protocol types, big-endian: a bounds-checked reader and what a writer needs (Kafka protocol guide)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from airmirror.errors import AirmirrorError


class MalformedRecord(AirmirrorError):
    """Bytes that are not what the topic's format says."""

    says = "a malformed record: {0.reason}"
    reason: str


class Reader:
    """Reads values one after the other and never past the end; raises MalformedRecord instead."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        if size < 0 or size > len(self._data) - self._position:
            raise MalformedRecord(f"{size} bytes wanted, {len(self._data) - self._position} are left")
        self._position += size
        return self._data[self._position - size : self._position]

    def int8(self) -> int:
        return int(struct.unpack(">b", self.take(1))[0])

    def int16(self) -> int:
        return int(struct.unpack(">h", self.take(2))[0])

    def int32(self) -> int:
        return int(struct.unpack(">i", self.take(4))[0])

    def int64(self) -> int:
        return int(struct.unpack(">q", self.take(8))[0])

    def utf8(self, size: int, what: str) -> str:
        """A text of ``size`` bytes; ``what`` names it where it is none."""
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise MalformedRecord(f"a {what} that is not UTF-8: {error.reason}") from error

    def string(self) -> str:
        return self.utf8(self.int16(), "string")

    def text(self) -> str:
        """A string of any length: INT32 bytes."""
        return self.utf8(self.int32(), "text")

    def texts(self) -> tuple[str, ...]:
        """INT32 count, then as many texts."""
        count = self.int32()
        if not 0 <= count <= self.left // 4:
            raise MalformedRecord(f"{count} texts in {self.left} bytes")
        return tuple(self.text() for _ in range(count))

    def unsigned_varint(self) -> int:
        value = 0
        for shift in range(0, 63, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise MalformedRecord("an unsigned varint of more than nine bytes")

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def end(self) -> None:
        """Raises MalformedRecord where bytes are left."""
        if self.left:
            raise MalformedRecord(f"{self.left} bytes too many")


def string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def texts(values: Sequence[str]) -> bytes:
    """INT32 count, then each text as INT32 bytes and UTF-8."""
    encoded = [value.encode() for value in values]
    return struct.pack(">i", len(encoded)) + b"".join(struct.pack(">i", len(text)) + text for text in encoded)


def unsigned_varint(value: int) -> bytes:
    """An unsigned varint: seven bits a byte, the lowest first."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """A zigzag varint."""
    return unsigned_varint((value << 1) ^ (value >> 63))


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zigzag varint and the position after it. Raises IndexError where it does not end."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value = byte & 0x7F
    for shift in range(7, 70, 7):
        position += 1
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position + 1
    raise IndexError

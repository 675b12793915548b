"""Headers added to a record whose bytes are otherwise left as they are (Kafka documentation, "Record").

A body is the bytes of a record from its key's length on: key, value and headers, each length a zigzag varint, -1 for null.
"""

from __future__ import annotations

from collections.abc import Sequence

from airmirror.wire.primitives import MalformedRecord, read_varint, varint


def with_headers(body: bytes, headers: Sequence[tuple[str, bytes]]) -> bytes:
    """The body with ``headers`` after its own. Raises MalformedRecord."""
    *_, own = parts_of(body)
    count, after = _read(own, 0)
    if count < 0:
        raise MalformedRecord(f"a record with {count} headers")
    added = b"".join(varint(len(name.encode())) + name.encode() + varint(len(value)) + value for name, value in headers)
    return body[: len(body) - len(own)] + varint(count + len(headers)) + own[after:] + added


def parts_of(body: bytes) -> tuple[bytes | None, bytes | None, bytes]:
    """Key, value, and the headers as they are in the record. Raises MalformedRecord."""
    parts: list[bytes | None] = []
    position = 0
    for _ in range(2):
        length, position = _read(body, position)
        parts.append(None if length < 0 else body[position : position + length])
        position += max(length, 0)
    if position > len(body):
        raise MalformedRecord("a record that is cut off")
    return parts[0], parts[1], body[position:]


def headers_of(tail: bytes) -> list[tuple[bytes, bytes | None]]:
    """The names and values of the headers that ``parts_of`` leaves as they are. Raises MalformedRecord."""
    count, position = _read(tail, 0)
    if not 0 <= count <= len(tail):
        raise MalformedRecord(f"a record with {count} headers")
    found: list[tuple[bytes, bytes | None]] = []
    for _ in range(count):
        length, position = _read(tail, position)
        name, position = tail[position : position + length], position + length
        length, position = _read(tail, position)
        value = None if length < 0 else tail[position : position + length]
        position += max(length, 0)
        found.append((name, value))
    if position != len(tail):
        raise MalformedRecord("headers that are cut off")
    return found


def record(body: bytes) -> bytes:
    """The body as the only record of a batch: its time and offset are the batch's own."""
    return varint(len(body) + 3) + b"\0\0\0" + body


def _read(data: bytes, position: int) -> tuple[int, int]:
    try:
        return read_varint(data, position)
    except IndexError as error:
        raise MalformedRecord("a record that is cut off") from error

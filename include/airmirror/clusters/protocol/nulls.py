"""Nulls where Kafka's message definitions allow none: kafka-python decodes them, and code that trusts it would fail later."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

# The fields of a message that could be null: (name, whether it may be, whether it is an array, the fields inside).
_Shape = tuple[tuple[str, bool, bool, Any], ...]


def null_field(message: type, version: int, answer: Any) -> str | None:
    """The name of a field of ``answer`` that is null and must not be; None where there is no such field.

    ``message`` is kafka-python's class of the response. Numbers can't be null and are not looked at.
    """
    return _null(_shape(message, version), answer)


def _null(shape: _Shape, value: Any) -> str | None:
    for name, is_nullable, is_array, inner in shape:
        field = getattr(value, name)
        if field is None:
            if not is_nullable:
                return name
        elif inner:
            for item in field if is_array else (field,):
                found = _null(inner, item)
                if found is not None:
                    return f"{name}.{found}"
    return None


@cache
def _shape(message: Any, version: int) -> _Shape:
    return tuple(_fields(message._struct, version))


def _fields(struct: Any, version: int) -> Iterator[tuple[str, bool, bool, Any]]:
    for field in struct.untagged_fields(version):
        is_array = hasattr(field, "array_of")
        inner = field.array_of if is_array else field
        inside = tuple(_fields(inner, version)) if hasattr(inner, "untagged_fields") else ()
        if is_array or inside or field._json["type"] in ("string", "bytes", "records"):
            yield field.name, field.nullable_for_version_q(version), is_array, inside

"""The CRC-32C of bytes, which numba compiles: by the processor's instruction where it has one, else by tables.

Only ``scanning`` imports this module.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from airmirror.native.loops import Bytes, Numbers, word

_INVERTED = 0xFFFFFFFF


def _instruction(_context: Any, value: Any, word: Any) -> Any:
    """The checksum after eight more bytes, by the instruction."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        kind = ir.FunctionType(number, [number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse42.crc32.64.64")  # type: ignore[no-untyped-call]
        return builder.call(function, arguments)

    return types.uint64(value, word), code


_eight_more: Any = intrinsic(_instruction)


@register_jitable
def by_instruction(data: Bytes, position: int, end: int, tables: Numbers) -> Any:
    value = np.uint64(_INVERTED)
    while position + 8 <= end:
        value = _eight_more(value, word(data, position))
        position += 8
    return _rest(np.int64(value), data, position, end, tables)


@register_jitable
def by_tables(data: Bytes, position: int, end: int, tables: Numbers) -> Any:
    """Eight bytes at a time ("slicing by eight"); ``tables``: eight of 256 numbers."""
    value = np.int64(_INVERTED)
    while position + 8 <= end:
        old = value
        value = np.int64(0)
        for byte in range(4):
            first = (old >> (8 * byte)) & 255 ^ np.int64(data[position + byte])
            value ^= tables[(7 - byte) * 256 + first] ^ tables[(3 - byte) * 256 + np.int64(data[position + 4 + byte])]
        position += 8
    return _rest(value, data, position, end, tables)


@register_jitable
def _rest(value: Any, data: Bytes, position: int, end: int, tables: Numbers) -> Any:
    while position < end:
        value = tables[(value ^ np.int64(data[position])) & 255] ^ (value >> 8)
        position += 1
    return value ^ np.int64(_INVERTED)


crc32c = by_instruction if llvm.get_host_cpu_features().get("sse4.2") else by_tables

"""Zigzag varints of the record format (Kafka documentation, "Record"), in numpy arrays; numba compiles them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]


@njit(cache=True)
def read_varint(data: Array, position: int, end: int) -> tuple[Any, int]:
    """A zigzag varint and the position after it; the position is -1 where it does not end in time."""
    value = np.uint64(0)
    shift = np.uint64(0)
    while position < end and shift < np.uint64(70):
        byte = data[position]
        position += 1
        value |= np.uint64(byte & 0x7F) << shift
        if byte < 0x80:
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), position
        shift += np.uint64(7)
    return np.int64(0), -1


@njit(cache=True)
def put_varint(out: Array, position: int, value: int) -> int:
    rest = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> np.int64(63))
    while rest >= np.uint64(0x80):
        out[position] = np.uint8(rest & np.uint64(0x7F)) | np.uint8(0x80)
        rest >>= np.uint64(7)
        position += 1
    out[position] = np.uint8(rest)
    return position + 1


@njit(cache=True)
def varint_size(value: int) -> int:
    rest = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> np.int64(63))
    size = 1
    while rest >= np.uint64(0x80):
        rest >>= np.uint64(7)
        size += 1
    return size

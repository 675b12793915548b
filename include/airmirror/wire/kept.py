"""The base of the mapping topic's records: a key begins with INT8 kind."""

from __future__ import annotations

import struct
from typing import ClassVar

from airmirror.wire.fields import Declared, clipped

REASON = clipped(10_000)


class MappingTopicRecord(Declared):
    """A record of the mapping topic: its key begins with its kind."""

    kind: ClassVar[int]

    def encode_key(self) -> bytes:
        return struct.pack(">b", self.kind) + super().encode_key()

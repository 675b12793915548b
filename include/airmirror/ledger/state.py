"""All that a plan must know of a flow, as it was at one moment (invariants A and C)."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from airmirror.wire.mappings import Hold, MappingRecord, Verified

Key = tuple[str, int]  # topic and partition of the source


@dataclass(frozen=True)
class State:
    """The contents of the internal topics, up to the offsets in ``scanned`` (by topic its id, and by partition the next one).

    ``mappings``: the newest mapping record of each partition. ``progress``: the last source offset in MirrorMaker 2's
    topic, an export where there are mappings, and counted where there are none. ``forgotten``: partitions of topics that
    the source does not have any more, by an operator's decision.
    """

    mappings: Mapping[Key, MappingRecord] = field(default_factory=dict)
    progress: Mapping[Key, int] = field(default_factory=dict)
    verified: Mapping[Key, Verified] = field(default_factory=dict)
    holds: Mapping[Key, Hold] = field(default_factory=dict)
    forgotten: Set[Key] = frozenset()
    scanned: Mapping[str, tuple[UUID, Mapping[int, int]]] = field(default_factory=dict)

    @cached_property
    def positions(self) -> dict[Key, int]:
        """The first source offset that is not accounted for, of every partition of which anything was copied."""
        begun = {key: offset + 1 for key, offset in self.progress.items()}
        return begun | {key: record.source_end for key, record in self.mappings.items()}

    @property
    def known(self) -> list[Key]:
        """The partitions that were replicated and not forgotten, in order."""
        return sorted(self.positions.keys() - self.forgotten)

    def reaches(self, ends: Mapping[str, tuple[UUID, Mapping[int, int]]]) -> bool:
        """Return whether it was read up to ``ends``, which are given like ``scanned``."""
        for topic, (topic_id, offsets) in ends.items():
            known_id, known = self.scanned.get(topic, (topic_id, {}))
            if known_id != topic_id or any(known.get(number, 0) < end for number, end in offsets.items()):
                return False
        return True

"""The invariants of every state, by the letters of the design (docs/protocol.md); the first that is broken."""

from __future__ import annotations

from model.protocol import OVER, Scope
from model.world import OPEN, MappingRecord, World, committed, known_progress, newest_mappings


def broken(scope: Scope, world: World) -> str:
    """What is wrong with a state; empty: nothing."""
    if world.wrong:
        return world.wrong
    for window, ender in zip(scope.enders, world.enders, strict=True):
        if ender.step == OVER and (left := _open(world, window)):
            return f"window {window} was ended, and its transaction of id {left[0]} is open"
    mappings = newest_mappings(world)
    progress = known_progress(world)
    for partition, source in enumerate(scope.source):
        own = sorted(found for found in mappings.values() if found.partition == partition)
        if reason := _partition(
            scope=scope, world=world, partition=partition, source=source, mappings=own, progress=progress.get(partition)
        ):
            return f"partition {partition}: {reason}"
    return ""


def _open(world: World, window: int) -> list[int]:
    return [
        number
        for number, producer in enumerate(world.producers)
        if producer.state == OPEN and producer.window == window
    ]


def _partition(
    scope: Scope, world: World, partition: int, source: str, mappings: list[MappingRecord], progress: int | None
) -> str:
    log = world.data[partition]
    found = committed(log)
    wanted = [offset for offset in range(scope.begins, len(source)) if source[offset] == "r"][: len(found)]
    if found != wanted:
        return f"D: the target holds source offsets {found}, and not {wanted}"
    position, end = scope.begins, 0
    for mapping in sorted(mappings, key=lambda each: (each.start, each.end)):
        if mapping.start != position:
            return f"C: mappings lead to {position}, the next one begins at {mapping.start}"
        position = mapping.end
        held = committed(log[mapping.first : mapping.last])
        copied = [offset for offset in range(mapping.start, mapping.end) if source[offset] == "r"]
        if held != copied or (copied and mapping.first < end):
            return f"G: {mapping} says where {copied} lie, and there are {held}"
        end = max(end, mapping.last)
    if len(found) != sum(source[offset] == "r" for offset in range(scope.begins, position)):
        return f"A: {len(found)} records are committed, mappings reach {position}"
    if progress is not None and progress + 1 != position:
        return f"A: progress is {progress}, mappings reach {position}"
    if world.verified[partition] > position:
        return f"F: verified up to {world.verified[partition]}, mappings reach {position}"
    return ""

"""The invariants of every state, by the letters of the design (docs/protocol.md); the first that is broken."""

from __future__ import annotations

from model.protocol import OVER, Scope
from model.world import OPEN, Segment, World, committed, known_progress, newest_segments


def broken(scope: Scope, world: World) -> str:
    """What is wrong with a state; empty: nothing."""
    if world.wrong:
        return world.wrong
    for window, ender in zip(scope.enders, world.enders, strict=True):
        if ender.step == OVER and (left := _open(world, window)):
            return f"window {window} was ended, and its transaction of id {left[0]} is open"
    segments = newest_segments(world)
    progress = known_progress(world)
    for partition, source in enumerate(scope.source):
        own = sorted(found for found in segments.values() if found.partition == partition)
        if reason := _partition(
            scope=scope, world=world, partition=partition, source=source, segments=own, progress=progress.get(partition)
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
    scope: Scope, world: World, partition: int, source: str, segments: list[Segment], progress: int | None
) -> str:
    log = world.data[partition]
    found = committed(log)
    wanted = [offset for offset in range(scope.begins, len(source)) if source[offset] == "r"][: len(found)]
    if found != wanted:
        return f"D: the target holds source offsets {found}, and not {wanted}"
    position, end = scope.begins, 0
    for segment in sorted(segments, key=lambda each: (each.start, each.end)):
        if segment.start != position:
            return f"C: segments lead to {position}, the next one begins at {segment.start}"
        position = segment.end
        held = committed(log[segment.first : segment.last])
        copied = [offset for offset in range(segment.start, segment.end) if source[offset] == "r"]
        if held != copied or (copied and segment.first < end):
            return f"G: {segment} says where {copied} lie, and there are {held}"
        end = max(end, segment.last)
    if len(found) != sum(source[offset] == "r" for offset in range(scope.begins, position)):
        return f"A: {len(found)} records are committed, segments reach {position}"
    if progress is not None and progress + 1 != position:
        return f"A: progress is {progress}, segments reach {position}"
    if world.verified[partition] > position:
        return f"F: verified up to {world.verified[partition]}, segments reach {position}"
    return ""

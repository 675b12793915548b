"""The topics on the target that hold a flow's progress and segments. Their names never use the policy's separator."""

from __future__ import annotations


def progress_topic(source: str) -> str:
    """Return the topic of MirrorMaker 2's source offsets in Kafka Connect: ``mm2-offsets.<source>.internal``."""
    return f"mm2-offsets.{source}.internal"


def segment_topic(source: str) -> str:
    """Return the topic of segments, verified offsets, claims and holds: ``airmirror-segments.<source>.internal``."""
    return f"airmirror-segments.{source}.internal"


def is_segment_topic(topic: str) -> bool:
    """Return whether a topic is a segment topic of any source. Like MirrorMaker 2's own topics, these are never replicated."""
    return topic.startswith("airmirror-segments.") and topic.endswith(".internal")


def is_progress_topic(topic: str) -> bool:
    """Return whether a topic holds the progress of any source, as Kafka Connect names it."""
    return topic.startswith("mm2-offsets.") and topic.endswith(".internal")

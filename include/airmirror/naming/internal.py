"""The topics on the target that hold a flow's progress and mappings. Their names never use the policy's separator."""

from __future__ import annotations


def progress_topic(source: str) -> str:
    """Return the topic of MirrorMaker 2's source offsets in Kafka Connect: ``mm2-offsets.<source>.internal``."""
    return f"mm2-offsets.{source}.internal"


def mapping_topic(source: str) -> str:
    """Return the topic of mappings, verified offsets, leases and holds: ``airmirror-mappings.<source>.internal``."""
    return f"airmirror-mappings.{source}.internal"


def is_mapping_topic(topic: str) -> bool:
    """Return whether a topic is a mapping topic of any source. Like MirrorMaker 2's own topics, these are never replicated."""
    return topic.startswith("airmirror-mappings.") and topic.endswith(".internal")


def is_progress_topic(topic: str) -> bool:
    """Return whether a topic holds the progress of any source, as Kafka Connect names it."""
    return topic.startswith("mm2-offsets.") and topic.endswith(".internal")

"""The names of remote topics: MirrorMaker 2's replication policies (C/{Default,Identity}ReplicationPolicy.java)."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from airmirror.errors import AirmirrorError


class ReplicationPolicy(Protocol):
    """MirrorMaker 2's interface of that name. ``None`` from topic_source and upstream_topic: not a remote topic."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str: ...
    def topic_source(self, topic: str) -> str | None: ...
    def upstream_topic(self, topic: str) -> str | None: ...
    def original_topic(self, topic: str) -> str: ...
    def heartbeats_topic(self) -> str: ...
    def offset_syncs_topic(self, alias: str) -> str: ...
    def checkpoints_topic(self, alias: str) -> str: ...
    def is_heartbeats_topic(self, topic: str) -> bool: ...
    def is_checkpoints_topic(self, topic: str) -> bool: ...
    def is_mm2_internal_topic(self, topic: str) -> bool: ...
    def is_internal_topic(self, topic: str) -> bool: ...


@dataclass(frozen=True)
class DefaultReplicationPolicy:
    """``orders`` of cluster ``east`` is ``east.orders`` on the target. A policy of your own may subclass this one."""

    separator: str = "."
    internal_topic_separator_enabled: bool = True
    source_alias: str | None = None
    aliases: tuple[str, ...] = ()  # that hold the separator: a name is taken apart after them, not within

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """The alias before the separator. Any local topic with the separator in its name looks remote."""
        known = [alias for alias in self.aliases if topic.startswith(f"{alias}{self.separator}")]
        if known:
            return max(known, key=len)
        parts = topic.split(self.separator)
        # Java's split drops trailing empty parts: "a." has one part, ".b" has two, "." has none.
        while parts and not parts[-1]:
            parts.pop()
        return parts[0] if len(parts) >= 2 else None

    def upstream_topic(self, topic: str) -> str | None:
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        upstream = self.upstream_topic(topic)
        return topic if upstream is None or upstream == topic else self.original_topic(upstream)

    def heartbeats_topic(self) -> str:
        return "heartbeats"

    def offset_syncs_topic(self, alias: str) -> str:
        return f"mm2-offset-syncs{self._internal_separator}{alias}{self._internal_suffix}"

    def checkpoints_topic(self, alias: str) -> str:
        return f"{alias}{self._checkpoints_suffix}"

    def is_heartbeats_topic(self, topic: str) -> bool:
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(self._checkpoints_suffix)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        return (topic.startswith("mm2") and topic.endswith(self._internal_suffix)) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """MirrorMaker 2's own topics and Kafka's (``__consumer_offsets``); since KIP-1074 no other ``….internal``."""
        return self.is_mm2_internal_topic(topic) or topic.startswith(("__", "."))

    @property
    def _internal_separator(self) -> str:
        return self.separator if self.internal_topic_separator_enabled else "."

    @property
    def _internal_suffix(self) -> str:
        return f"{self._internal_separator}internal"

    @property
    def _checkpoints_suffix(self) -> str:
        return f"{self._internal_separator}checkpoints{self._internal_suffix}"


@dataclass(frozen=True)
class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Names stay as they are, and so cycles can't be seen; what ends with ``heartbeats`` is renamed all the same."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return super().format_remote_topic(source_alias, topic) if self._looks_like_heartbeats(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        return super().topic_source(topic) if self._looks_like_heartbeats(topic) else self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return super().upstream_topic(topic) if self._looks_like_heartbeats(topic) else topic

    def _looks_like_heartbeats(self, topic: str) -> bool:
        return topic.endswith(self.heartbeats_topic())


_PACKAGES = ("org.apache.kafka.connect.mirror", "org.apache.kafka.mirror", "io.strimzi.kafka.connect.mirror", "")
_POLICIES = {
    "DefaultReplicationPolicy": DefaultReplicationPolicy,
    "IdentityReplicationPolicy": IdentityReplicationPolicy,
    "LegacyReplicationPolicy": IdentityReplicationPolicy,  # what some distributions call Identity
}


class UnknownReplicationPolicy(AirmirrorError, bad_input=True):
    """A replication.policy.class that is neither MirrorMaker 2's nor a Python class that can be had."""

    class_name: str
    reason: str
    says = (
        "replication.policy.class = {0.class_name}: {0.reason}; "
        f"use one of {', '.join(_POLICIES)} or a Python class, as module:Class"
    )


def policy(
    class_name: str,
    separator: str,
    internal_topic_separator_enabled: bool,
    source_alias: str | None,
    aliases: Iterable[str] = (),
) -> ReplicationPolicy:
    """The policy a flow names: one of MirrorMaker 2's, with or without package, or ``module:Class`` of your own.

    Your own class is called with the keyword arguments separator, internal_topic_separator_enabled and source_alias.
    ``aliases``: all that are known; MirrorMaker 2's policies here tell those apart that hold the separator.
    Raises UnknownReplicationPolicy.
    """
    own = ":" in class_name
    found = _own(class_name) if own else _POLICIES[built_in_policy(class_name)]
    more = {} if own else {"aliases": tuple(alias for alias in aliases if separator in alias)}
    try:
        made = found(
            separator=separator,
            internal_topic_separator_enabled=internal_topic_separator_enabled,
            source_alias=source_alias,
            **more,
        )
    except TypeError as error:
        raise UnknownReplicationPolicy(class_name, str(error)) from error
    missing = sorted(name for name in _METHODS if not callable(getattr(made, name, None)))
    if missing:
        raise UnknownReplicationPolicy(class_name, f"lacks the methods {', '.join(missing)}")
    return made


def built_in_policy(class_name: str) -> str:
    """The name here of one of MirrorMaker 2's policies; nothing is imported for it. Raises UnknownReplicationPolicy."""
    package, _, simple_name = class_name.rpartition(".")
    if package not in _PACKAGES or simple_name not in _POLICIES:
        raise UnknownReplicationPolicy(class_name, "no such policy here, and Java classes can't run")
    return simple_name


_METHODS = tuple(name for name in vars(ReplicationPolicy) if not name.startswith("_"))


def _own(path: str) -> type[DefaultReplicationPolicy]:
    module_name, _, name = path.partition(":")
    try:
        found: type[DefaultReplicationPolicy] = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnknownReplicationPolicy(path, f"can't be imported: {error}") from error
    return found

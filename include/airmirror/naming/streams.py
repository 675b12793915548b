"""The internal topics of Kafka Streams applications, by the names that Kafka's own StreamsResetter goes by."""

from __future__ import annotations

import re
from collections.abc import Iterable

CHANGELOG = "-changelog"
# Records of these were handled when they are gone: Streams deletes them after the application has read them.
_PURGED = re.compile(
    r".*-(?:repartition|subscription-registration-topic|subscription-response-topic"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-[0-9]+-topic)"
)


def is_internal_of(application: str, topic: str) -> bool:
    """Return whether a topic's name is that of an internal one of an ``application.id``: a changelog, a repartition topic."""
    name = topic.removeprefix(f"{application}-")
    return name != topic and (f"-{name}".endswith(CHANGELOG) or _PURGED.fullmatch(f"-{name}") is not None)


def is_internal_of_any(applications: Iterable[str], topic: str) -> bool:
    """Return whether it is that of any of these applications."""
    return any(is_internal_of(application, topic) for application in applications)


def is_purged(applications: Iterable[str], topic: str) -> bool:
    """Return whether it is an internal topic of any of them from which Streams deletes what the application has read."""
    return is_internal_of_any(applications, topic) and not topic.endswith(CHANGELOG)

"""A remote topic's configs: of a new one, and what an existing one needs (reference: MirrorSourceConnector).

MirrorMaker 2 copies what the source sets and writes all of it every ten minutes. Here only differences are written, and
what exact copies need (``ALWAYS``, ``UNLESS_SET``, room for the source's largest record) is never taken away again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airmirror.clusters.admin.description import ConfigChange, ConfigValue
from airmirror.config import Flow
from airmirror.naming import TopicFilter

TIMESTAMP_TYPE = "message.timestamp.type"
ALWAYS = {
    TIMESTAMP_TYPE: "CreateTime",  # each record keeps its own time (invariant D)
    "compression.type": "producer",  # batches are written as they came
}
LONGEST = str(2**63 - 1)
UNLESS_SET = {
    "message.timestamp.before.max.ms": LONGEST,  # old records are replicated too
    "message.timestamp.after.max.ms": LONGEST,
}
LARGEST = "max.message.bytes"


@dataclass(frozen=True)
class ConfigDifference:
    """A config that differs between a topic and its remote topic.

    ``change`` is what will be written, None where the difference stays; ``reason`` says why in either case.
    """

    key: str
    source: str | None
    target: str | None
    change: ConfigChange | None
    reason: str


def remote_configs(flow: Flow, source: Mapping[str, ConfigValue]) -> dict[str, str]:
    """The configs of a new remote topic: what the source sets and the flow does not exclude, and what copies need.

    Like MirrorMaker 2: nothing read-only, sensitive or from a broker's own file; Kafka's defaults only with
    ``use.defaults.from = source``. Besides, the largest record that fits the source must fit the target.
    """
    excluded = _excluded(flow)
    copied = {
        name: config.value
        for name, config in source.items()
        if config.value is not None
        and (_defaults_are_copied(flow) or not config.is_default)
        and not (config.read_only or config.sensitive or config.source == "STATIC_BROKER_CONFIG")
        and not excluded.matches(name)
    }
    largest = source[LARGEST].value if LARGEST in source else None
    return UNLESS_SET | copied | ({LARGEST: largest} if largest else {}) | ALWAYS


def config_differences(
    flow: Flow,
    remote: str,
    source: Mapping[str, ConfigValue],
    target: Mapping[str, ConfigValue],
    times_replaced: bool = False,
) -> Iterator[ConfigDifference]:
    """Yield the differences between a topic and its remote topic, in order of the keys, and the remedy for each.

    A config that the source leaves at Kafka's default is deleted on the target (or set, with ``use.defaults.from =
    source``), so an edit by hand on the target does not last, as with MirrorMaker 2. ``times_replaced``: the user has
    declared that the target may stamp records itself.
    """
    enabled, excluded = flow.settings.sync_topic_configs_enabled, _excluded(flow)
    for key in sorted(source.keys() & target.keys()):
        here, there = source[key], target[key]
        wanted, reason = _wanted(flow, key, here, there)
        settled = not there.is_own if wanted is None else there.value == wanted
        alike = here.value == there.value
        if settled and alike:
            continue
        change = None
        if not settled:
            stays = "topics.log.append.time names the topic" if times_replaced and key == TIMESTAMP_TYPE else None
            stays = stays or _stays(flow, key, here, there, excluded)
            stays = stays or (None if enabled else "sync.topic.configs.enabled = false")
            if stays and alike:
                continue
            change = None if stays else ConfigChange(remote, key, there.value, wanted)
            reason = stays or reason
        elif key not in ALWAYS:
            reason = _stays(flow, key, here, there, excluded) or reason
        yield ConfigDifference(key, here.value, there.value, change, reason)


def _wanted(flow: Flow, key: str, here: ConfigValue, there: ConfigValue) -> tuple[str | None, str]:
    """The value that a remote topic's config should have, None for the target's default; and why."""
    if key in ALWAYS:
        return ALWAYS[key], f"exact copies need {ALWAYS[key]}"
    if key in UNLESS_SET and flow.is_aggregate:
        return UNLESS_SET[key], "other sources' records of any time are replicated too"
    unset = flow.is_aggregate or here.is_default or here.source == "STATIC_BROKER_CONFIG"
    if key in UNLESS_SET and unset:
        return UNLESS_SET[key], "the source does not set it on the topic, and records of any time are replicated"
    if key == LARGEST and unset:
        enough = int(there.value or 0) >= int(here.value or 0)
        return (there.value if enough else here.value), "the target takes at least what the source takes"
    if here.is_default and not _defaults_are_copied(flow):
        return None, "the source has Kafka's default, the target its own (use.defaults.from = target)"
    return here.value, "the source's value is copied"


def _stays(flow: Flow, key: str, here: ConfigValue, there: ConfigValue, excluded: TopicFilter) -> str | None:
    """Return why a config is not copied at all, whatever the values are."""
    if excluded.matches(key):
        return "config.properties.exclude names it"
    if flow.is_aggregate and key not in (*ALWAYS, *UNLESS_SET, LARGEST):
        return "other sources' topics are copied into it too: set it on the remote topic"
    if here.read_only or there.read_only:
        return "it is read-only"
    if here.sensitive:
        return "it is sensitive: its value can't be read"
    if here.source == "STATIC_BROKER_CONFIG" and key not in (*ALWAYS, *UNLESS_SET, LARGEST):
        return "the source has it from its brokers' own file, which is not copied; set it on the topic"
    return None


def _excluded(flow: Flow) -> TopicFilter:
    return TopicFilter(flow.settings.config_properties_exclude, ())


def _defaults_are_copied(flow: Flow) -> bool:
    return flow.settings.use_defaults_from == "source"

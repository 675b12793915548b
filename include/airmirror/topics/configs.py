"""The configs of a new remote topic, from those of its source topic (reference: MirrorSourceConnector.targetConfig)."""

from __future__ import annotations

from collections.abc import Mapping

from airmirror.clusters.description import ConfigValue
from airmirror.config import Flow
from airmirror.config.values import as_list
from airmirror.naming import TopicFilter

ALWAYS = {
    "message.timestamp.type": "CreateTime",  # each record keeps its own time (invariant D)
    "compression.type": "producer",  # batches are written as they came
}
_LONGEST = str(2**63 - 1)
UNLESS_SET = {
    "message.timestamp.before.max.ms": _LONGEST,  # old records are replicated too
    "message.timestamp.after.max.ms": _LONGEST,
}


def remote_configs(flow: Flow, source: Mapping[str, ConfigValue]) -> dict[str, str]:
    """What the source sets and the flow does not exclude, and what exact copies need.

    Like MirrorMaker 2: nothing read-only, sensitive or from a broker's own file; Kafka's defaults only with
    ``use.defaults.from = source``. Besides, the largest record that fits the source must fit the target.
    """
    excluded = TopicFilter(as_list(flow.settings["config.properties.exclude"]), ())
    defaults = flow.settings["use.defaults.from"] == "source"
    copied = {
        name: config.value
        for name, config in source.items()
        if config.value is not None
        and (defaults or not config.is_default)
        and not config.read_only
        and not config.sensitive
        and config.source != "STATIC_BROKER_CONFIG"
        and not excluded.matches(name)
    }
    largest = source["max.message.bytes"].value if "max.message.bytes" in source else None
    limit = {"max.message.bytes": largest} if largest else {}
    return UNLESS_SET | copied | limit | ALWAYS

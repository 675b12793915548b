"""Connect's configurations of MirrorMaker 2's three connectors, put together to flows as a properties file has them.

The keys of a connector are those of a flow, save for its clusters' settings, which are at ``source.cluster.`` and
``target.cluster.``. Dedicated MirrorMaker 2 makes the same three configurations out of one file; this is the inverse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from airmirror.config.errors import Problem
from airmirror.config.foreign.tree import Node
from airmirror.config.keys import KEYS, KeyScope
from airmirror.config.keys.clients import CONNECTION
from airmirror.config.model import Setting

PACKAGE = "org.apache.kafka.connect.mirror."
KINDS = SOURCE, CHECKPOINT, HEARTBEAT = "MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector"
_OTHERS_READ = {
    CHECKPOINT: re.compile(r"(groups|emit\.checkpoints|checkpoints|sync\.group|refresh\.groups|group\.filter)[.]?.*"),
    HEARTBEAT: re.compile(r"(emit\.heartbeats|heartbeats)\..*"),
}
"""The keys whose value counts where the connector that reads them has it; any other counts where the source connector has it."""

_WITHOUT = {
    CHECKPOINT: ("emit.checkpoints.enabled", "sync.group.offsets.enabled"),
    HEARTBEAT: ("emit.heartbeats.enabled",),
}
"""What is off where a connector is not there."""

_SIDE = re.compile(r"(source|target)\.cluster\.(.+)")
_OWN_OFFSETS = "offsets.storage.topic"
_NAMED = {"name", "connector.class", "source.cluster.alias", "target.cluster.alias", _OWN_OFFSETS}


@dataclass(frozen=True)
class Connector:
    """A connector: ``kind`` is its class without the package, ``config`` what it is configured with.

    ``workers_offsets``: the topic in which its workers keep progress, where that is known.
    """

    name: str
    kind: str
    config: Mapping[str, Node]
    line: int
    workers_offsets: Node | None = None

    def get(self, key: str, default: str = "") -> str:
        return self.config[key].text.strip() if key in self.config else default

    @property
    def flow(self) -> str:
        return f"{self.get('source.cluster.alias')}->{self.get('target.cluster.alias', 'target')}"


@dataclass
class FoundSettings:
    """The settings of a properties file by key, in its order, with what is to be said of them."""

    settings: dict[str, Setting] = field(default_factory=dict)
    notes: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def put(self, key: str, value: Node) -> bool:
        """Set a key; False where it has another value already."""
        return self.settings.setdefault(key, Setting(key, value.text, value.line)).value == value.text


def flows_of(connectors: Sequence[Connector], found: FoundSettings) -> None:
    """Put the settings of all connectors' flows and clusters to ``found``."""
    fit = [each for each in connectors if each.get("source.cluster.alias")]
    problem = "lacks source.cluster.alias, which names its flow"
    found.problems += [Problem(each.line, each.name, problem) for each in connectors if each not in fit]
    if not fit:
        return
    aliases = dict.fromkeys(alias for connector in fit for alias in connector.flow.split("->"))
    found.put("clusters", Node(fit[0].line, ", ".join(aliases)))
    for name in dict.fromkeys(connector.flow for connector in fit):
        of_flow: dict[str, Connector] = {}
        for connector in fit:
            if connector.flow == name and of_flow.setdefault(connector.kind, connector) is not connector:
                problem = (
                    f"a second {connector.kind} of {name}: here it is one flow; join the topics of both in one of them"
                )
                found.problems.append(Problem(connector.line, connector.name, problem))
        if SOURCE not in of_flow:
            problem = f"there is no {SOURCE} from {name.replace('->', ' to ')}: nothing is replicated"
            found.problems.append(Problem(next(iter(of_flow.values())).line, name, problem))
            continue
        _flow(found, name, of_flow)


def _flow(found: FoundSettings, name: str, connectors: Mapping[str, Connector]) -> None:
    of_source = connectors[SOURCE]
    off = {kind for kind, each in connectors.items() if kind != SOURCE and each.get("enabled") == "false"}
    connectors = {kind: each for kind, each in connectors.items() if kind not in off}
    for connector in connectors.values():
        for key, value in connector.config.items():
            if (side := _SIDE.fullmatch(key)) and key not in _NAMED:
                _of_cluster(found, name, alias=name.split("->")[side[1] == "target"], key=side[2], value=value)
    found.put(f"{name}.enabled", of_source.config.get("enabled", Node(of_source.line, "true")))
    for key, value in _merged(found, name, connectors):
        found.put(f"{name}.{key}", value)
    _progress(found, name, of_source)
    for kind, keys in _WITHOUT.items():
        if kind not in connectors:
            for key in keys:
                found.put(f"{name}.{key}", Node(of_source.line, "false"))
            message = f"off, as its {kind} is" if kind in off else f"off, since there is no {kind}"
            found.notes.append(Problem(of_source.line, f"{name}.{keys[0]}", message))


def _progress(found: FoundSettings, flow: str, of_source: Connector) -> None:
    """The place of its progress: the workers' topic, over which Connect reads a connector's own."""
    own = of_source.config.get(_OWN_OFFSETS)
    topics = [each for each in (of_source.workers_offsets, own) if each is not None]
    found.put(f"{flow}.takeover.connector.name", Node(of_source.line, of_source.name))
    if topics:
        found.put(f"{flow}.takeover.offsets.topics", Node(topics[0].line, ", ".join(each.text for each in topics)))
    else:
        message = (
            f"set {flow}.takeover.offsets.topics to its workers' offset.storage.topic to continue after its progress"
        )
        found.notes.append(Problem(of_source.line, f"{flow}.takeover.connector.name", message))


def _of_cluster(found: FoundSettings, flow: str, *, alias: str, key: str, value: Node) -> None:
    """A cluster's setting, at ``<alias>.``; at the flow where another flow has another."""
    if key not in CONNECTION and not (key in KEYS and KEYS[key].scope is KeyScope.WORKER):
        found.notes.append(Problem(value.line, f"{alias}.{key}", "left out: no client of a connector reads it"))
    elif found.put(f"{alias}.{key}", value):
        return
    elif key == "bootstrap.servers":
        problem = "another connector has other servers for this alias: give one of the two clusters another alias"
        found.problems.append(Problem(value.line, f"{alias}.{key}", problem))
    else:
        side = "source" if flow.startswith(f"{alias}->") else "target"
        found.put(f"{flow}.{side}.cluster.{key}", value)


def _merged(found: FoundSettings, flow: str, connectors: Mapping[str, Connector]) -> Iterator[tuple[str, Node]]:
    """The keys of a flow's connectors, each with the value of the connector that reads it."""
    keys = dict.fromkeys(key for connector in connectors.values() for key in connector.config)
    for key in keys:
        if key in _NAMED or _SIDE.fullmatch(key):
            continue
        have = {kind: connector.config[key] for kind, connector in connectors.items() if key in connector.config}
        reader = next((kind for kind, reads in _OTHERS_READ.items() if reads.fullmatch(key)), SOURCE)
        counts = have.get(reader) or next(iter(have.values()))
        for kind, value in have.items():
            if value.text != counts.text:
                message = f"another value of the {kind} is left out: here it is one flow"
                found.notes.append(Problem(value.line, f"{flow}.{key}", message))
        yield key, counts

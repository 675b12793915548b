"""Client settings: the effect of each, and those that no client of an enabled flow could connect with, found without asking a
broker, as every command would."""

from __future__ import annotations

from collections.abc import Iterator

from airmirror.cli.options import with_connections
from airmirror.clusters.protocol.sasl import transport
from airmirror.clusters.security.model import UnsupportedClientSetting
from airmirror.clusters.security.settings import JAVA_CLASS, is_class
from airmirror.config import Configuration, ConnectionNeeded, Flow, Problem
from airmirror.config.explain import KeyRow, placed
from airmirror.config.keys.clients import CLIENT, COPIES, ROLES
from airmirror.config.places import Level, of_client, place
from airmirror.config.resolve import client_settings
from airmirror.errors import AirmirrorError
from airmirror.slot.compression import compression_of


def clients(configuration: Configuration) -> tuple[list[Problem], list[str]]:
    """Return the problems of the client settings of enabled flows, each once, and notes on them."""
    problems: dict[Problem, None] = {}
    notes: dict[str, None] = {}
    for named in configuration.enabled:
        try:
            flow = with_connections(configuration, named)
        except ConnectionNeeded as error:
            notes[str(error)] = None
        except AirmirrorError as error:
            problems[Problem(None, named.name, str(error))] = None
        else:
            problems |= dict.fromkeys(_refused(configuration, flow))
            notes |= dict.fromkeys(_unused(configuration, flow))
    return list(problems), list(notes)


def _refused(configuration: Configuration, flow: Flow) -> Iterator[Problem]:
    for side, cluster in (("source", flow.source), ("target", flow.target)):
        settings = client_settings(cluster.alias, placed(configuration), flow.name, side)
        for role in ROLES:
            try:
                transport(cluster, role)
                if (side, role) == ("target", "producer"):
                    compression_of(flow)
            except UnsupportedClientSetting as error:
                names = (f"{role}.{error.key}", error.key)
                at = next((settings[name] for name in names if name in settings), None)
                line, key = (at.line, at.key) if at else (None, f"{cluster.alias}.{error.key}")
                yield Problem(line, key, error.reason)


def _unused(configuration: Configuration, flow: Flow) -> Iterator[str]:
    """Yield settings of a log-in or of TLS that were given to a cluster whose protocol has none of it."""
    for side, cluster in (("source", flow.source), ("target", flow.target)):
        protocol = cluster.client("admin").get("security.protocol", "PLAINTEXT").strip().upper()
        settings = client_settings(cluster.alias, placed(configuration), flow.name, side)
        found = [
            each.key
            for name, each in sorted(settings.items())
            if (name.startswith("sasl.") and not protocol.startswith("SASL"))
            or (name.startswith("ssl.") and not protocol.endswith("SSL"))
        ]
        own = [key for key in found if place(key, tuple(configuration.clusters)).level is not Level.TOP]
        if own:
            yield f"{', '.join(own)}: not used, {cluster.alias}.security.protocol is {protocol}"


def explain_clients() -> list[KeyRow]:
    """Every setting of Kafka's clients, by name; ``scope`` says of which kinds of client."""
    return [
        KeyRow(name=name, scope=_clients(name), here=_here(name), doc="A setting of Kafka's clients.")
        for name in sorted(CLIENT)
    ]


def _clients(name: str) -> str:
    return ", ".join(role for role, names in ROLES.items() if name in names)


def _here(name: str) -> str:
    if is_class(name):
        return f"Kafka's own classes are accepted, others refused: {JAVA_CLASS}"
    if note := of_client(f"producer.{name}"):
        return note.message
    if name.startswith("compression."):
        return "used for records without compression, which are compressed by it, for offset syncs, checkpoints and heartbeats"
    return "used" if name in COPIES else "used, but for the copy of records itself, which has a client of its own"

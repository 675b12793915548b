"""From a Strimzi resource, or Connect's JSON of connectors, to the settings of a properties file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from airmirror.config.errors import ConfigurationError, Problem
from airmirror.config.foreign import secrets, strimzi
from airmirror.config.foreign.connectors import KINDS, PACKAGE, Connector, FoundSettings, flows_of
from airmirror.config.foreign.tree import Node, parse
from airmirror.config.model import Setting

SECRETS_FROM = "AIRMIRROR_SECRETS_FROM"
"""The environment's name for the place of Kubernetes' secrets."""

_FOREIGN = re.compile(r"^kind:[ \t]*['\"]?Kafka(MirrorMaker2|Connector)\b", re.MULTILINE)


@dataclass(frozen=True)
class Translation:
    """The settings, each with its line in the text that they are from, and what is to be said of that text."""

    settings: tuple[Setting, ...]
    notes: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()


def is_foreign(text: str) -> bool:
    """Return whether a text is a resource or JSON, and no properties file."""
    return text.lstrip().startswith(("{", "[")) or bool(_FOREIGN.search(text))


def translate(text: str, name: str, secrets_from: str | None = None) -> Translation:
    """Translate a text, which was decoded as Java decodes properties files. ``name`` is its path in errors.

    ``secrets_from``: see ``secrets.with_providers``. Raises ConfigurationError.
    """
    place = secrets_from or os.environ.get(SECRETS_FROM) or secrets.DEFAULT
    if not secrets.is_place(place):
        reason = f"must be {secrets.FILES}<directory>, {secrets.ENVIRONMENT} or {secrets.AIRFLOW}, not {place!r}"
        raise ConfigurationError(name, (Problem(None, SECRETS_FROM, reason),))
    try:
        text = text.encode("iso-8859-1").decode()
    except UnicodeError:
        raise ConfigurationError(name, (Problem(None, "", "neither YAML nor JSON: it is no UTF-8"),)) from None
    found = FoundSettings()
    connectors = [each for document in parse(text, name) for each in _connectors(document, found)]
    if not connectors and not found.problems:
        found.problems.append(Problem(None, "", "it has no connector of MirrorMaker 2"))
    flows_of(connectors, found)
    settings, problems = secrets.with_providers(list(found.settings.values()), place)
    return Translation(tuple(settings), tuple(found.notes), (*found.problems, *problems))


def _connectors(document: Node, said: FoundSettings) -> Iterator[Connector]:
    """The connectors of one document: a resource, a list of resources or connectors, or what Connect's REST API answers."""
    kind = document.at("kind").text
    if kind == "KafkaMirrorMaker2":
        yield from strimzi.connectors_of(document, said)
    elif kind == "KafkaConnector":
        yield from _mirrors(strimzi.connector_of(document, said), said)
    elif kind == "List" or document.items:
        for item in (*document.items, *document.at("items").items):
            yield from _connectors(item, said)
    elif "connector.class" in document.fields:  # GET or PUT /connectors/<name>/config
        yield from _mirrors(_connector(document, document.at("name").text), said)
    elif "config" in document.fields:  # GET or POST /connectors
        yield from _mirrors(_connector(document.at("config"), document.at("name").text), said)
    else:  # GET /connectors?expand=info
        for name, node in document.fields.items():
            if "info" in node.fields:
                yield from _mirrors(_connector(node.at("info", "config"), name), said)


def _connector(config: Node, name: str) -> Connector:
    return Connector(name, config.at("connector.class").text.removeprefix(PACKAGE), config.fields, config.line)


def _mirrors(connector: Connector, said: FoundSettings) -> Iterator[Connector]:
    if connector.kind in KINDS:
        yield connector
    else:
        message = f"left out: {connector.kind or 'it'} is no connector of MirrorMaker 2"
        said.notes.append(Problem(connector.line, connector.name, message))

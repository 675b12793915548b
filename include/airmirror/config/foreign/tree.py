"""A YAML or JSON text as nodes that know their lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airmirror.config.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from yaml import Node as YamlNode

MOST_NODES = 100_000
"""An anchor may stand for a tree of others: what a few lines name could be more than memory holds."""


@dataclass(frozen=True)
class Node:
    """A scalar as its text (None: null), a mapping, or a sequence; ``line`` counts from 1."""

    line: int
    value: str | dict[str, Node] | tuple[Node, ...] | None = field(repr=False)  # it may be a secret

    @property
    def fields(self) -> dict[str, Node]:
        """The fields of a mapping that are not null; none of anything else."""
        if not isinstance(self.value, dict):
            return {}
        return {name: node for name, node in self.value.items() if node.value is not None}

    @property
    def items(self) -> tuple[Node, ...]:
        return self.value if isinstance(self.value, tuple) else ()

    @property
    def text(self) -> str:
        """A scalar; "" for anything else."""
        return self.value if isinstance(self.value, str) else ""

    def at(self, *path: str) -> Node:
        """The node below a path of fields; an empty one where there is none."""
        node = self
        for name in path:
            node = node.fields.get(name, Node(node.line, None))
        return node


def parse(text: str, name: str) -> list[Node]:
    """The documents of a text. Raises ConfigurationError, which has no value of the text in it."""
    import yaml  # only where a configuration is no properties file

    try:
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        left = iter(range(MOST_NODES))
        return [_node(document, left) for document in documents if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, wrong = (mark.line + 1 if mark else None), f"neither YAML nor JSON: {error.problem}"
    except yaml.YAMLError:
        line, wrong = None, "neither YAML nor JSON: a character can't be in it"
    except _NoNameError as error:
        line, wrong = error.args[0], "a name is a list or a mapping"
    except (RecursionError, _TooManyError):
        line, wrong = None, "is nested too deeply, or has too many values"
    raise ConfigurationError(name, (Problem(line, "", wrong),))


class _TooManyError(Exception):
    """More nodes than are read."""


class _NoNameError(Exception):
    """The line of a key that is no text."""


def _node(node: YamlNode, left: Iterator[int]) -> Node:
    from yaml import MappingNode, ScalarNode, SequenceNode

    if next(left, None) is None:
        raise _TooManyError
    line = node.start_mark.line + 1
    if isinstance(node, MappingNode):
        for key, _ in node.value:
            if not isinstance(key, ScalarNode):
                raise _NoNameError(key.start_mark.line + 1)
        # A value is where its key is, whatever lines it fills.
        return Node(
            line, {key.value: Node(key.start_mark.line + 1, _node(value, left).value) for key, value in node.value}
        )
    if isinstance(node, SequenceNode):
        return Node(line, tuple(_node(each, left) for each in node.value))
    kind = node.tag.rpartition(":")[2]
    if kind == "null":
        return Node(line, None)
    if kind == "bool":
        return Node(line, str(node.value.lower() in ("true", "yes", "on")).lower())
    return Node(line, node.value)

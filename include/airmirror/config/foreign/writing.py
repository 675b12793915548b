"""Settings written as a properties file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import javaproperties

from airmirror.config.model import Setting

_NEEDLESS = re.compile(r"((?:\\\\)*)\\([:=#!])")


def render(settings: Sequence[Setting], origin: str, remarks: Mapping[str, str]) -> str:
    """The text of a properties file; ``remarks``, by key, stand before their lines."""
    lines = [f"# Translated by airmirror from {_one_line(PurePath(origin).name)}"]
    for setting in settings:
        if setting.key in remarks:
            lines.append(f"# {_one_line(remarks[setting.key])}")
        lines.append(f"{javaproperties.escape(setting.key)} = {_value(setting.value)}")
    return "\n".join((*lines, ""))


def _value(text: str) -> str:
    """A value as Java reads it; what need not be escaped in a value is not."""
    escaped = javaproperties.join_key_value("", text, separator="=").removeprefix("=")
    return _NEEDLESS.sub(r"\1\2", escaped)


def _one_line(text: str) -> str:
    """Write what a stranger wrote so that it begins no line of its own."""
    return "".join(each if each.isprintable() else " " for each in text)

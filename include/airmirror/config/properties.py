"""A Java properties file as settings with line numbers, and settings as such a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

import javaproperties

from airmirror.config.errors import ConfigurationError, Problem
from airmirror.config.model import Setting

_LINE_END = re.compile(r"\r\n|\r|\n")


def read(path: Path) -> str:
    """The text of a file as Java reads it: ISO-8859-1. Raises ConfigurationError where it can't be read."""
    try:
        return path.read_text(encoding="iso-8859-1")
    except OSError as error:
        raise ConfigurationError(str(path), (Problem(None, "", f"can't be read: {error.strerror}"),)) from error


def overrides(path: Path | None) -> dict[str, str]:
    """Keys and values of a file that override the configuration's (``--secrets``). Raises ConfigurationError."""
    return {} if path is None else {each.key: each.value for each in settings(read(path), str(path))}


def settings(text: str, name: str) -> Iterator[Setting]:
    """Yield every key and value, each with the line it begins on. Raises ConfigurationError for a broken ``\\u`` escape."""
    try:
        elements = list(javaproperties.parse(text))
    except javaproperties.InvalidUEscapeError as error:
        line = text[: text.find(error.escape)].count("\n") + 1
        raise ConfigurationError(name, (Problem(line, "", f"not a \\u escape: {error.escape}"),)) from error
    line = 1
    for element in elements:
        if isinstance(element, javaproperties.KeyValue):
            # Blank lines and comments come as elements of their own, so an entry begins where its source does.
            yield Setting(element.key, element.value, line)
        line += len(_LINE_END.findall(element.source))


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
    """Write what a stranger wrote so that it begins no line of its own, in the letters of such a file."""
    printable = "".join(each if each.isprintable() else " " for each in text)
    return printable.encode("iso-8859-1", "backslashreplace").decode("iso-8859-1")

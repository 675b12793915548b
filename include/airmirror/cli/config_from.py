"""``airmirror config --from``: what Strimzi or Connect have, line by line as a properties file, and the file itself."""

from __future__ import annotations

import os
from pathlib import Path

import typer
from rich.text import Text

from airmirror.cli.options import console
from airmirror.cli.tables import DOUBTFUL, print_json, show, table
from airmirror.config import ConfigurationError, foreign, masked, properties, translated

SAME = "the same"


def show_translation(file: Path, write: Path | None, secrets_from: str | None, as_json: bool) -> None:
    """Print every setting with its line in ``file`` and its effect here; write them unless something must be said otherwise.

    Raises ConfigurationError with all that can't be done, before anything is written.
    """
    text = properties.read(file)
    if not foreign.is_foreign(text):
        raise typer.BadParameter(
            f"{file} is no resource of Strimzi and no JSON of Connect's connectors", param_hint="--from"
        )
    found = translated(text, str(file), secrets_from)
    if found.problems:
        raise ConfigurationError(str(file), found.problems)
    remarks: dict[str, str] = {}
    for note in found.notes:
        remarks[note.key] = f"{remarks[note.key]}; {note.message}" if note.key in remarks else note.message
    rows = [
        (setting.line, setting.key, masked(setting.key, setting.value), remarks.get(setting.key, SAME))
        for setting in found.settings
    ]
    keys = {setting.key for setting in found.settings}
    rows += [(note.line, note.key, "", note.message) for note in found.notes if note.key not in keys]
    rows.sort(key=lambda row: row[0] or 0)
    if write is not None:
        _write(write, foreign.render(found.settings, str(file), remarks))
    if as_json:
        names = ("line", "key", "value", "here")
        print_json(console, [dict(zip(names, row, strict=True)) for row in rows])
        return
    painted = [(str(at), key, value, here if here == SAME else Text(here, DOUBTFUL)) for at, key, value, here in rows]
    show(console, table(str(file), ("line", "mirror.properties", "value", "here"), painted))
    if write is not None:
        show(console, f"Written to {write}. To look at what counts for each flow: airmirror config --config {write}")


def _write(file: Path, text: str) -> None:
    """A new file that nobody else may read: there may be passwords in it. Raises typer.BadParameter where there is one."""
    try:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="iso-8859-1") as written:
            written.write(text)
    except OSError as error:
        raise typer.BadParameter(f"{file} can't be written: {error.strerror}", param_hint="--write") from error

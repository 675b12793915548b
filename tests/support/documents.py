"""``make docs``: docs/errors.md from the classes of errors, docs/cli.md from commands' help, docs/tuning.md from its table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from airmirror.cli.main import app
from airmirror.config.tuning import LATENCY, OFFSETS, THROUGHPUT, Advice
from airmirror.errors import AirmirrorError
from support import ROOT
from support.errors import all_errors, sample

ERRORS = """# Errors

Every error that Airmirror raises on purpose, by name, with a message of made-up facts: what happened, where, and the way out.
A command in a message runs as printed. *Transient*: the same may work later, and Airflow retries the task. *Final*: you must
decide or mend something first, and nothing is tried again. `make docs` writes this page from the code.
"""
COMMANDS = """# Commands

What `airmirror --help` and `airmirror <command> --help` say. `make docs` writes this page from the code.
"""
TUNING = """# Tuning

The keys by which MirrorMaker 2 is tuned, what Airmirror does by itself, what to set instead, and what it costs. A file that sets
them stays valid: `airmirror config` says the same of each of its lines. `make docs` writes this page from the code.

Most of the field's table has no counterpart here. Slots size their fetches by what the target takes, write every batch as they
read it, and share the partitions again in each window. What is left to decide: how many cores a flow may hold (`tasks.max`), how
late records may be (`window.schedule`, `window.follow.ms`: [operations](operations.md#follow-the-log)), and how much of the line
is its own (`throttle.bytes.per.second`: [limits](operations.md#limit-a-flow)). Measure before and after:
`airmirror_phase_seconds_total` says in which phase windows spend their time, `airmirror_lag_seconds` whether it matters.
"""


def errors_page() -> str:
    """The text of docs/errors.md."""
    found = sorted((each for each in all_errors() if each is not AirmirrorError), key=lambda each: each.__name__)
    return "\n".join([ERRORS, *(_error(each) for each in found)])


def _error(error: type[AirmirrorError]) -> str:
    kind = "transient or final, as its cause is" if isinstance(error.transient, property) else None
    kind = kind or ("transient" if error.transient else "final")
    told = " ".join((error.__doc__ or "").split("\n\n")[0].split())
    message = textwrap.indent(str(sample(error)), "    ")
    return f"## {error.__name__}\n\n*{kind.capitalize()}.* {told}\n\n{message}\n"


def commands_page() -> str:
    """The text of docs/cli.md."""
    return "\n".join([COMMANDS, *_commands(typer.main.get_command(app), "airmirror")])


def _commands(command: Any, name: str) -> Iterator[str]:
    usage = " ".join([name, *command.collect_usage_pieces(command.make_context(name, [], resilient_parsing=True))])
    lines = [f"## {name}", "", " ".join((command.help or "").split()), "", f"    {usage}", ""]
    rows = [
        _parameter(each)
        for each in command.params
        if each.name not in ("help", "install_completion", "show_completion")
    ]
    yield "\n".join([*lines, *(["| option | meaning |", "|---|---|", *rows, ""] if rows else [])])
    for word, found in sorted(getattr(command, "commands", {}).items()):
        yield from _commands(found, f"{name} {word}")


def _parameter(parameter: Any) -> str:
    names = (
        ", ".join(f"`{name}`" for name in parameter.opts)
        if parameter.param_type_name == "option"
        else f"`{parameter.name}`"
    )
    told = " ".join((getattr(parameter, "help", None) or "").split())
    if parameter.required:
        told += " Required."
    if isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool):
        told += f" {parameter.default} by default."
    if parameter.envvar:
        told += f" In the environment: `{parameter.envvar}`."
    return f"| {names} | {told.strip().replace('|', chr(92) + '|')} |"


def tuning_page() -> str:
    """The text of docs/tuning.md."""
    parts = {
        "Throughput": THROUGHPUT,
        "Latency, and what happens when something fails": LATENCY,
        "Offsets and groups": OFFSETS,
    }
    return "\n".join([TUNING, *(_advice(title, rows) for title, rows in parts.items())])


def _advice(title: str, rows: Sequence[Advice]) -> str:
    lines = [
        f"## {title}",
        "",
        "| MirrorMaker 2 | Airmirror by itself | set instead | what that costs |",
        "|---|---|---|---|",
    ]
    for row in rows:
        keys = ", ".join(f"`{key}`" for key in row.keys)
        lines.append(f"| {keys} | {row.here} | {row.instead or 'nothing'} | {row.costs or '–'} |")
    return "\n".join([*lines, ""])


PAGES = {"errors.md": errors_page, "cli.md": commands_page, "tuning.md": tuning_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / "docs" / name).write_text(page())

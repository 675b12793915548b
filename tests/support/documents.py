"""``make docs``: docs/errors.md from the classes of errors, docs/cli.md from commands' help, docs/tuning.md from its table,
docs/compatibility.md's tables from what tests have tried, those of docs/protocol.md from the tests of pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Any

import typer

from airmirror.cli.main import app
from airmirror.clusters.protocol.errors import error_name
from airmirror.config.tuning import LATENCY, OFFSETS, THROUGHPUT, Advice
from airmirror.errors import AirmirrorError
from airmirror.times import utc
from pairs import table
from support import ROOT, compatibility
from support.blanks import Count, blank
from support.errors import FLOW, all_errors, sample

ERRORS = """# Errors

This page lists all errors that Airmirror raises on purpose: when it raises them, and the message with the way out. In a message
\\<topic> is a placeholder; in a real message you can copy the command. *Transient*: the same may work later, and
Airflow tries the task again. *Final*: you must decide or repair something first. *Transient or final*: it depends on the cause.
The tables follow the packages of the code (`include/airmirror`). `make docs` writes this page from the code.
"""
FEW = 4  # errors of a package that has no table of its own
# What messages make of blanks, and the flow that meets the error.
BLANKS = {utc(0): "<time>", error_name(Count("code")): "<error> (<code>)", FLOW: "<flow>"}
COMMANDS = """# Commands

The help of each command (`airmirror COMMAND --help`). [Operations](operations.md#commands) describes dry runs and exit
statuses. `make docs` writes this page from the code. Several commands have these options:
"""
MANY = 3  # commands that have an option; it is shown once
TUNING = """# Tuning

The keys by which MirrorMaker 2 is tuned, what Airmirror does by itself, what to set instead, and what it costs. A file that sets
them stays valid: `airmirror config` says the same of each of its lines. Times and sizes beyond what librdkafka takes, which does
all but the copy of records, count as the nearest that it takes. `make docs` writes this page from the code.

Most of these keys are not needed. What is left to decide: [how many cores](sizing.md#how-many-slots-a-window-takes) a flow
may hold, [how late](operations.md#follow-the-log) records may be, and [how much of the line](operations.md#limit-a-flow) is
its own. Measure before and after: `airmirror_phase_seconds_total` says in which phase windows spend their time,
`airmirror_lag_seconds` whether it matters.
"""


def errors_page() -> str:
    """The text of docs/errors.md: a table for each room, and one for those that have few."""
    rooms: dict[str, list[type[AirmirrorError]]] = {}
    for error in all_errors():
        if error is not AirmirrorError:
            rooms.setdefault(error.__module__.split(".")[1], []).append(error)
    few = [name for name, errors in rooms.items() if len(errors) <= FEW]
    others = [error for name in few for error in rooms.pop(name)]
    return "\n".join([ERRORS, *(_room(name, rooms[name]) for name in sorted(rooms)), _room("other packages", others)])


def _room(name: str, errors: Sequence[type[AirmirrorError]]) -> str:
    rows = (_error(each) for each in sorted(errors, key=lambda each: each.__name__))
    return "\n".join(
        [f"## {name}", "", "| error | | when | message, with the way out |", "|---|---|---|---|", *rows, ""]
    )


def _error(error: type[AirmirrorError]) -> str:
    kind = "transient or final" if isinstance(error.transient, property) else None
    kind = kind or ("transient" if error.transient else "final")
    when = re.sub(r" \(invariants? [^)]*\)", "", (error.__doc__ or "").split("\n\n")[0])  # for those who read the code
    message = str(sample(error, fact=blank))
    for made_up, name in BLANKS.items():
        message = message.replace(made_up, name)
    return f"| `{error.__name__}` | {kind} | {_cell(when)} | {_cell(message)} |"


def _cell(text: str) -> str:
    """Return the text as a cell of a table."""
    return _escaped(text.replace("|", r"\|"))


def _escaped(text: str) -> str:
    """Return the text as one line, in which nothing but code between backticks is markup."""
    parts = re.split(r"(`+[^`]+`+)", " ".join(text.split()))
    for at, part in enumerate(parts):
        unquoted = re.sub(r"'(<(?!flow>)[a-z ]+>)'", r"\1", part)  # the name of a flow needs them in a shell
        parts[at] = unquoted if at % 2 else re.sub(r"([<*])", r"\\\1", part)
    return "".join(parts)


def commands_page() -> str:
    """The text of docs/cli.md; an option that several commands have is shown once."""
    commands = list(_commands(typer.main.get_command(app), "airmirror"))
    counts = Counter(row for _, command in commands for row in _rows(command).values())
    shared = {row for row, count in counts.items() if count >= MANY}
    return "\n".join([COMMANDS, *sorted(shared), "", *(_command(name, each, shared) for name, each in commands)])


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    below = sorted(getattr(command, "commands", {}).items())
    if not below or _rows(command):  # what only has commands does nothing by itself
        yield name, command
    for word, found in below:
        yield from _commands(found, f"{name} {word}")


def _command(name: str, command: Any, shared: Set[str]) -> str:
    """A command's help, its own options, and the names of those that are shown above."""
    rows = _rows(command)
    lines = [row for row in rows.values() if row not in shared]
    common = ", ".join(f"`{option}`" for option, row in rows.items() if row in shared)
    text = _help(command) + (f" Options [as above](#commands): {common}." if common else "")
    return "\n".join([f"## {name}", "", text, "", *lines, *([""] if lines else [])])


def _help(command: Any) -> str:
    return " ".join((command.help or "").split()).replace("<", r"\<")


def _rows(command: Any) -> dict[str, str]:
    """Return a line for each option and argument of a command, by its first name."""
    hidden = ("help", "install_completion", "show_completion")
    return {each.opts[0]: _parameter(each) for each in command.params if each.name not in hidden}


def _parameter(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    names = ", ".join(f"`{name}`" for name in parameter.opts) if is_option else f"`{parameter.name}` (argument)"
    meaning = " ".join((getattr(parameter, "help", None) or "").split())
    if parameter.required:
        meaning += " Required."
    if isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool):
        meaning += f" {parameter.default:g} by default."
    if parameter.envvar:
        meaning += f" In the environment: `{parameter.envvar}`."
    return f"- {names}: {_escaped(meaning)}"


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


PAGES = {
    "errors.md": errors_page,
    "cli.md": commands_page,
    "tuning.md": tuning_page,
    "compatibility.md": compatibility.page,
    "protocol.md": table.page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / "docs" / name).write_text(page())

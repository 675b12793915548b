"""Errors at the command line: one message on standard error, JSON where that is asked for, and an exit status that says whose
they are."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from typing import ParamSpec

import typer
from rich.console import Console

from airmirror.cli.extras import not_installed
from airmirror.cli.tables import line
from airmirror.errors import AirmirrorError

P = ParamSpec("P")

NOT_VERIFIED, BAD_INPUT = 1, 2
TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h, as the Spark application has it
INTERRUPTED = 130


def status_of(error: AirmirrorError, otherwise: int = NOT_VERIFIED) -> int:
    """The exit status for an error: 2 where the input is to blame, 75 where the same command may work later."""
    if error.bad_input:
        return BAD_INPUT
    return TRY_AGAIN if error.transient else otherwise


def status_of_all(errors: Iterable[AirmirrorError]) -> int:
    """The exit status where something is not verified: 75 where nothing but what may be well later is to blame."""
    return TRY_AGAIN if {status_of(error) for error in errors} == {TRY_AGAIN} else NOT_VERIFIED


def told(error: AirmirrorError) -> dict[str, str | bool]:
    """An error for programs."""
    return {"name": type(error).__name__, "transient": error.transient, "message": str(error)}


def failures_reported(
    command: Callable[P, None], status: int = NOT_VERIFIED, interrupted: str = "interrupted"
) -> Callable[P, None]:
    """A command whose AirmirrorErrors are told, and become ``status_of`` them with ``status`` for all others.

    So is it told where a module of an extra is missing: ``NotInstalled``.
    """

    @functools.wraps(command)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (AirmirrorError, ModuleNotFoundError) as raised:
            error = raised if isinstance(raised, AirmirrorError) else not_installed(raised)
            if error is None:
                raise
            if kwargs.get("as_json"):
                typer.echo(json.dumps({"error": told(error)}, indent=2, ensure_ascii=False))
            label = "error (try again):" if error.transient else "error:"
            Console(stderr=True).print(line(label, error), soft_wrap=True)
            raise typer.Exit(status_of(error, status)) from error
        except KeyboardInterrupt:
            typer.echo(interrupted, err=True)
            raise typer.Exit(INTERRUPTED) from None

    # A terminal has its own width: no line of --help ends where one of the source does.
    reporting.__doc__ = "\n\n".join(" ".join(each.split()) for each in (command.__doc__ or "").split("\n\n"))
    return reporting

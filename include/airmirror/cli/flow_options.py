"""The options that every command of a flow has, and the decorator that gives a command what they say."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import Any, Concatenate

import typer

from airmirror.cli.failures import failures_reported
from airmirror.cli.options import (
    DEFAULT_CONFIG,
    DEFAULT_LEDGER,
    AsJson,
    Config,
    FlowName,
    LedgerUrl,
    Secrets,
    opened_flow,
)
from airmirror.flows.prepare import Opened


@dataclass(frozen=True)
class FlowOptions:
    """The flow that was named, where its configuration, ledger and secrets are, and whether programs read the answer."""

    flow: str
    config: Path
    ledger: str
    secrets: Path | None
    as_json: bool = False

    def opened(self, flow: str = "", *, shows: bool = False) -> AbstractContextManager[Opened]:
        """Open the flow, or another one of its configuration. ``shows``: the command only looks (``opened_flow``)."""
        return opened_flow(self.config, flow or self.flow, self.ledger, self.secrets, shows=shows)


def is_of_subcommand(context: typer.Context) -> bool:
    """Return whether a subcommand was named. Raises typer.BadParameter for options before it, which it would not get."""
    sources = [(each.opts[0], context.get_parameter_source(each.name or "")) for each in context.command.params]
    before = [option for option, source in sources if source is not None and source.name == "COMMANDLINE"]
    if context.invoked_subcommand and before:
        raise typer.BadParameter(f"write {', '.join(before)} after {context.invoked_subcommand!r}, not before it")
    return bool(context.invoked_subcommand)


_FIRST = (Parameter("flow", Parameter.KEYWORD_ONLY, annotation=FlowName, default=""),)
_LAST = (
    Parameter("config", Parameter.KEYWORD_ONLY, annotation=Config, default=DEFAULT_CONFIG),
    Parameter("ledger", Parameter.KEYWORD_ONLY, annotation=LedgerUrl, default=DEFAULT_LEDGER),
    Parameter("secrets", Parameter.KEYWORD_ONLY, annotation=Secrets, default=None),
)
_JSON = Parameter("as_json", Parameter.KEYWORD_ONLY, annotation=AsJson, default=False)


def flow_command(
    command: Callable[Concatenate[FlowOptions, ...], None], has_json: bool = True, interrupted: str = "interrupted"
) -> Callable[..., None]:
    """Make a command of a flow: it gets the shared options as one value, and its errors are told (``failures_reported``).

    In its help ``--flow`` comes after what it requires, the other shared options come last. ``has_json``: --json is one.
    """
    shared = (*_FIRST, *_LAST, *((_JSON,) if has_json else ()))

    @functools.wraps(command)
    def of_flow(**kwargs: Any) -> None:
        command(FlowOptions(**{each.name: kwargs.pop(each.name) for each in shared}), **kwargs)

    own = [
        each.replace(kind=Parameter.KEYWORD_ONLY)
        for each in list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    ]
    required = [each for each in own if each.default is Parameter.empty]
    others = [each for each in own if each.default is not Parameter.empty]
    of_flow.__signature__ = inspect.Signature([*required, *_FIRST, *others, *shared[1:]])  # type: ignore[attr-defined]
    return failures_reported(of_flow, interrupted=interrupted)

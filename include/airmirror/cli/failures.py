"""Errors at the command line: one message on standard error, and an exit status that says whose they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

import typer
from rich.console import Console

from airmirror.errors import AirmirrorError

P = ParamSpec("P")

NOT_VERIFIED, BAD_INPUT = 1, 2


def failures_reported(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose AirmirrorErrors are told and become exit status 1, or 2 where the input is to blame."""

    @functools.wraps(command)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except AirmirrorError as error:
            kind = "try again" if error.transient else "to be decided"
            Console(stderr=True).print(f"[red]error[/] ({kind}): {error}", highlight=False, soft_wrap=True)
            raise typer.Exit(BAD_INPUT if _is_bad_input(error) else NOT_VERIFIED) from error

    return reporting


def _is_bad_input(error: AirmirrorError) -> bool:
    from airmirror.clusters.admin import HostNotResolved
    from airmirror.clusters.security import UnsupportedClientSetting
    from airmirror.config import ConfigurationError, FlowNotEnabled, UnknownFlow
    from airmirror.flows.holds import DecisionIncomplete, NoSuchPartition, NotHeld
    from airmirror.flows.positions import NoSuchGroup, NoSuchPosition
    from airmirror.flows.prepare import NoTopicMatches
    from airmirror.flows.reset import NotOfTheFlow
    from airmirror.naming import InvalidPattern, UnknownReplicationPolicy
    from airmirror.topics.identity import AliasDiffers, AliasReused
    from airmirror.windows.errors import EqualClusterIds, InternalTopicUnfit, SameCluster
    from airmirror.windows.resets import ResetNotPossible

    return isinstance(
        error,
        ConfigurationError | FlowNotEnabled | UnknownFlow | InvalidPattern | UnknownReplicationPolicy | SameCluster
        | UnsupportedClientSetting | HostNotResolved | NoTopicMatches | InternalTopicUnfit
        | EqualClusterIds | AliasDiffers | AliasReused | NotOfTheFlow | ResetNotPossible
        | DecisionIncomplete | NoSuchPartition | NotHeld | NoSuchGroup | NoSuchPosition,
    )  # fmt: skip

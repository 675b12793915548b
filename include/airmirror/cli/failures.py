"""Errors at the command line: one message on standard error, and an exit status that says whose they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

import typer
from rich.console import Console

from airmirror.cli.tables import line
from airmirror.errors import AirmirrorError

P = ParamSpec("P")

NOT_VERIFIED, BAD_INPUT = 1, 2
INPUT = frozenset(
    {
        "AliasDiffers",
        "AliasReused",
        "BadConnection",
        "BadExpectations",
        "BadKey",
        "BadPositions",
        "BadRename",
        "BadSample",
        "BadSchedule",
        "ConfigurationError",
        "ConnectionNeeded",
        "DecisionIncomplete",
        "EqualClusterIds",
        "EmptyTimeRange",
        "FlowNotEnabled",
        "FlowNotNamed",
        "HostNotResolved",
        "InternalTopicUnfit",
        "InvalidPattern",
        "LedgerUrlInvalid",
        "NoReport",
        "NoSuchGroup",
        "NoSuchPartition",
        "NoSuchPosition",
        "NotHeld",
        "NotMirrored",
        "NotOfTheFlow",
        "NothingToCompare",
        "NothingToReport",
        "PositionsNotWritten",
        "ReportNotWritten",
        "ResetNotPossible",
        "SameCluster",
        "UnknownComparison",
        "UnknownFlow",
        "UnknownReplicationPolicy",
        "UnsupportedClientSetting",
    }
)
"""The errors that what was typed or configured is to blame for, by name: none is imported for it."""


def failures_reported(command: Callable[P, None], status: int = NOT_VERIFIED) -> Callable[P, None]:
    """A command whose AirmirrorErrors are told and become exit status ``status``, or 2 where the input is to blame."""

    @functools.wraps(command)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except AirmirrorError as error:
            label = "error (try again):" if error.transient else "error:"
            Console(stderr=True).print(line(label, error), soft_wrap=True)
            raise typer.Exit(BAD_INPUT if type(error).__name__ in INPUT else status) from error

    return reporting

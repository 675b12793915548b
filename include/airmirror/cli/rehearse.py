"""``airmirror failover rehearse`` and ``migration rehearse``: what the real one relies on is proven by reading."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import (
    console,
)
from airmirror.cli.plans import end_outcome, report_base
from airmirror.cli.report import KeyFile, signer_of
from airmirror.cli.steps import telling


@flow_command
def rehearse(
    given: FlowOptions,
    write: Annotated[
        Path | None,
        typer.Option(help="Write the report as PATH.html and PATH.json; rehearsal.<flow>.<time> by default."),
    ] = None,
    key: KeyFile = None,
) -> None:
    """Rehearse a failover while everything runs: each group's next record is read on both sides, the newest records are
    compared, rights are asked for. Both clusters are only read. Exit status: 0 it would work, 1 it would not.
    """
    from airmirror.runbooks.rehearsal.rehearse import rehearse as carry_out
    from airmirror.runbooks.rehearsal.report import RehearsalReport, shown

    signs = signer_of(key)
    with given.opened(shows=True) as opened, telling(console) as tell:
        made, name = shown(RehearsalReport.of(carry_out(opened, tell))), opened.flow.name
    end_outcome(made, report_base(write, "rehearsal", name, made.made_ms), signs, given.as_json)


@flow_command
def rehearse_move(
    given: FlowOptions,
    move: Annotated[str, typer.Option("--move", help="The move group: <flow>.move.<name>.… in the configuration.")],
    write: Annotated[
        Path | None,
        typer.Option(help="Write the report as PATH.html and PATH.json; rehearsal.<flow>.<move>.<time> by default."),
    ] = None,
    key: KeyFile = None,
) -> None:
    """Rehearse a migration while everything runs: each group's next record is read on both sides, the newest records are
    compared, rights are asked for. Both clusters are only read. Exit status: 0 it would work, 1 it would not.
    """
    from airmirror.runbooks.migration.rehearsal import rehearse_move as carry_out
    from airmirror.runbooks.migration.rehearsal_report import MoveReport, shown

    signs = signer_of(key)
    with given.opened(shows=True) as opened, telling(console) as tell:
        made, name = shown(MoveReport.of(carry_out(opened, move, tell))), opened.flow.name
    end_outcome(made, report_base(write, "rehearsal", f"{name}.{move}", made.made_ms), signs, given.as_json)

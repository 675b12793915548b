"""``airmirror handback``: MirrorMaker 2 continues at the very next record."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Annotated

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
    console,
    opened_flow,
)
from airmirror.cli.tables import line, print_json, show, table
from airmirror.errors import counted
from airmirror.flows.rounds import Round
from airmirror.naming import progress_topic


@failures_reported
def handback(
    flow: FlowName = "",
    topic: Annotated[
        str, typer.Option(help="Write progress into this topic of Connect's workers, while the connector is stopped.")
    ] = "",
    connector: Annotated[
        str, typer.Option(help="The connector's name there; by default takeover.connector.name.")
    ] = "",
    write: Annotated[
        Path | None, typer.Option(help="Write the body for PATCH /connectors/<name>/offsets of Connect's REST API.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --topic: write; without it nothing is.")] = False,
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Show where MirrorMaker 2 would continue, and hand the flow back to it. Pause the flow's DAGs first.

    A dedicated MirrorMaker 2 needs nothing: its progress is up to date.
    """
    from airmirror.flows.handback import positions, rest_body, write_offsets

    with opened_flow(config, flow, ledger, secrets, shows=not (topic and yes)) as opened:
        name = connector or opened.flow.settings.takeover_connector_name
        rounds: list[Round] = []
        if topic and yes:
            found, rounds = write_offsets(opened, topic, name, f"handback-{uuid.uuid4().hex[:8]}")
        else:
            found = positions(opened)
        body, alias = rest_body(opened, found), opened.flow.source.alias
    if write is not None:
        try:
            write.write_text(json.dumps(body, indent=2))
        except OSError as error:
            raise typer.BadParameter(f"{write} can't be written: {error.strerror}", param_hint="--write") from error
    if as_json:
        print_json(console, body)
    else:
        rows = [(each.topic, each.partition, each.offset, each.offset + 1) for each in found]
        numbers = ("partition", "copied last", "continues at")
        title = f"{opened.flow.name}: where MirrorMaker 2 continues"
        show(console, table(title, ("topic", *numbers), rows, right=numbers, empty="nothing was copied"))
        show(console, _done(found_in=progress_topic(alias), topic=topic, name=name, yes=yes, count=len(found)))
    for each in rounds:
        show(console, line(each.name, each.error or each.said, "red" if each.error else "green"))
    if any(each.error for each in rounds):
        raise typer.Exit(1)


def _done(*, found_in: str, topic: str, name: str, yes: bool, count: int) -> str:
    if not topic:
        return f"A dedicated MirrorMaker 2 finds it in {found_in}. For one on Connect: --topic, or --write."
    what = f"{counted(count, 'partition')} of {name!r} in {topic}"
    return f"Written: the progress of {what}." if yes else f"Nothing is written: --yes writes the progress of {what}."

"""``airmirror status``: the enabled flows, and whether something needs a person."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console

from airmirror.cli import show
from airmirror.cli.failures import NOT_VERIFIED, TRY_AGAIN, failures_reported, told
from airmirror.cli.options import (
    DEFAULT_CONFIG,
    DEFAULT_LEDGER,
    AsJson,
    Config,
    LedgerUrl,
    Secrets,
    console,
    loaded,
    opened_flow,
)
from airmirror.cli.tables import line, print_all, print_json
from airmirror.config import ConfigurationError
from airmirror.errors import AirmirrorError
from airmirror.ledger import LedgerUnavailable


@failures_reported
def status(
    flow: Annotated[str, typer.Option("--flow", help="Only this flow; by default all that are enabled.")] = "",
    config: Config = DEFAULT_CONFIG,
    ledger: LedgerUrl = DEFAULT_LEDGER,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Show the enabled flows: their partitions, lag, verified offsets, holds, and the last windows. While a cluster does not
    answer, as the ledger last saw them. --json has the `error` of a flow that can't be looked at in its place. Exit status: 1
    something needs a person, 75 a cluster does not answer.
    """
    from airmirror.flows.status import flow_status

    checked = loaded(config, secrets)
    wrong = ConfigurationError(str(config), checked.problems)
    if flow in checked.broken:
        raise wrong
    if checked.problems:
        Console(stderr=True).print(line("error:", wrong), soft_wrap=True)
    configuration, found, failed = checked.configuration, [], list[AirmirrorError]()
    broken = [] if flow else [each.name for each in checked.whole.enabled if each.name in checked.broken]
    rows: list[dict[str, Any]] = [{"flow": name, "error": told(wrong)} for name in broken]
    for each in [configuration.flow(flow)] if flow else configuration.enabled:
        try:
            with opened_flow(config, each.name, ledger, secrets, shows=True) as opened:
                found.append(flow_status(opened))
                rows.append(asdict(found[-1]))
        except AirmirrorError as error:
            # The ledger is all flows': each would wait for it again.
            if flow or len(checked.whole.enabled) == 1 or isinstance(error, LedgerUnavailable):
                raise
            failed.append(error)
            rows.append({"flow": each.name, "error": told(error)})
    if as_json:
        print_json(console, rows)
    else:
        print_all(console, *(part for item in found for part in show.status(item)))
    for why in failed:
        Console(stderr=True).print(line("error:", why), soft_wrap=True)
    if broken or any(item.needs_somebody for item in found) or not all(why.transient for why in failed):
        raise typer.Exit(NOT_VERIFIED)
    if failed or any(item.unreachable for item in found):
        raise typer.Exit(TRY_AGAIN)

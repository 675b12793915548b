"""``airmirror config``: everything that is wrong with a configuration at once, and what counts for each flow."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from airmirror.cli import show
from airmirror.cli.failures import failures_reported
from airmirror.cli.options import DEFAULT_CONFIG, AsJson, Config, Secrets, console, loaded
from airmirror.cli.tables import DOUBTFUL, line, print_json
from airmirror.cli.tables import show as print_all
from airmirror.config import explain, resolve
from airmirror.topics.names import check


@failures_reported
def config(
    config: Config = DEFAULT_CONFIG,
    explain_keys: Annotated[bool, typer.Option("--explain", help="List every key with what it does here.")] = False,
    secrets: Secrets = None,
    as_json: AsJson = False,
) -> None:
    """Check the configuration and show what counts for each flow, and the line it comes from."""
    if explain_keys:
        from airmirror.clusters.client_settings import explain_clients

        rows, clients = explain(), explain_clients()
        if as_json:
            print_json(console, [asdict(row) for row in (*rows, *clients)])
        else:
            print_all(console, *show.keys(rows, clients))
        return
    configuration = loaded(config, secrets)
    check(configuration)
    values = {name: resolve(configuration, name) for name in configuration.flows}
    if as_json:
        print_json(console, {name: [asdict(row) for row in effective] for name, effective in values.items()})
        return
    notes = [line("note", note, DOUBTFUL) for note in configuration.notes]
    tables = [show.values(name, configuration.flows[name].enabled, effective) for name, effective in values.items()]
    print_all(console, *notes, *tables)

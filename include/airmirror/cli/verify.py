"""``airmirror verify``: both logs, read again and compared."""

from __future__ import annotations

from typing import Annotated

import typer

from airmirror.cli import show
from airmirror.cli.flow_options import FlowOptions, flow_command
from airmirror.cli.options import Expectations, console, expectations_in, new_identifier
from airmirror.cli.tables import line, print_all, print_json


@flow_command
def verify(
    given: FlowOptions,
    topics: Annotated[str, typer.Option(help="Only these topics: names, separated by commas.")] = "",
    expectations: Expectations = None,
) -> None:
    """Read both logs again, compare every replicated record that both still hold, and judge again what is held."""
    from airmirror.clusters.protocol.routes import TopicNotFound
    from airmirror.flows.gates import expectations_of, verify_flow
    from airmirror.flows.verification import compare_all

    chosen = [name.strip() for name in topics.split(",") if name.strip()]
    by = expectations_of(expectations_in(given.config, expectations))
    with given.opened() as opened, console.status("comparing both logs"):
        rows = compare_all(opened, chosen)
        errors = []
        gone = any(isinstance(row.error, TopicNotFound) for row in rows)  # or hidden from who asks
        if rows and not gone:  # what differs elsewhere keeps no partition held
            errors = verify_flow(opened, by, window=f"verify-{new_identifier()}")[0].errors
    if given.as_json:
        print_json(console, [row.as_dict() for row in rows])
    else:
        print_all(console, show.comparison(rows), *(line("held", error) for error in errors))
    if errors or any(row.error for row in rows):
        raise typer.Exit(1)

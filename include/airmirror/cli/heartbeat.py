"""``airmirror heartbeat``: one heartbeat of a flow."""

from __future__ import annotations

from airmirror.cli.failures import failures_reported
from airmirror.cli.options import DEFAULT_CONFIG, Config, FlowName, Secrets, Yes, console, loaded, with_connections


@failures_reported
def heartbeat(flow: FlowName = "", yes: Yes = False, config: Config = DEFAULT_CONFIG, secrets: Secrets = None) -> None:
    """Write one heartbeat of the flow to its target, as the DAG heartbeats.<target> does on its rhythm."""
    from airmirror.config.pairs import heartbeat_flow
    from airmirror.offsets.heartbeats import emit_heartbeat

    loaded_ = loaded(config, secrets).configuration
    found = heartbeat_flow(loaded_, flow or loaded_.flow().name)
    if not yes:
        console.print(f"Nothing was written: --yes writes a heartbeat of {found.name}.", highlight=False)
        return
    topic = emit_heartbeat(with_connections(loaded_, found))
    console.print(f"a heartbeat of {found.name} was written to {topic}", highlight=False)

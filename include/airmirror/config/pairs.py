"""The pairs of clusters between which MirrorMaker 2 emits heartbeats: more than the flows that the file names."""

from __future__ import annotations

from airmirror.config.errors import UnknownFlow
from airmirror.config.explain import placed
from airmirror.config.model import Configuration, Flow
from airmirror.config.resolve import flow


def heartbeat_flows(configuration: Configuration) -> tuple[Flow, ...]:
    """The flows that emit heartbeats, whether enabled or not: those that the file names, and back from each.

    The heartbeats of ``west->east`` are written to east, and ``east->west`` replicates them: so a flow needs the reverse flow.
    (MirrorMaker 2 emits between all pairs of clusters; no flow replicates, and nothing measures, what is left out here.)
    """
    settings = placed(configuration)
    names = dict.fromkeys(configuration.flows)
    names |= dict.fromkeys("->".join(reversed(name.split("->"))) for name in configuration.flows)
    found = (flow(name, settings) for name in names)
    return tuple(each for each in found if interval_seconds(each) is not None)


def heartbeat_flow(configuration: Configuration, name: str) -> Flow:
    """The flow of that name that emits heartbeats. Raises UnknownFlow."""
    found = {each.name: each for each in heartbeat_flows(configuration)}
    if name not in found:
        raise UnknownFlow(configuration.path, name, tuple(found))
    return found[name]


def interval_seconds(flow: Flow) -> int | None:
    """Seconds from one heartbeat to the next; None: none are emitted (switched off, or less than 0 as in MirrorMaker 2)."""
    if not flow.settings.emit_heartbeats_enabled:
        return None
    return max(1, flow.settings.emit_heartbeats_interval_seconds)

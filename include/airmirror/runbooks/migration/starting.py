"""The settings with which applications start on the target: those that change, and no secrets."""

from __future__ import annotations

from typing import Literal

from airmirror.config import Flow
from airmirror.runbooks.migration.chosen import Move

SHOWN = ("security.protocol", "sasl.mechanism")  # of the flow's own access: what else a client needs is its own


def how_to_start(flow: Flow, move: Move, who: Literal["consumers", "producers"]) -> list[str]:
    """Return what to tell people, a line each: who starts where, and each property that changes."""
    target = flow.target
    lines = [f"start your {who} on {target.alias}:", f"  bootstrap.servers = {','.join(target.bootstrap_servers)}"]
    settings = target.client(who.removesuffix("s"))
    lines += [f"  {key} = {settings[key]}" for key in SHOWN if settings.get(key)]
    if who == "consumers":
        lines.append("  isolation.level = read_committed")
    renamed = {topic: remote for topic, remote in move.names.items() if topic != remote}
    lines += [f"  topic {topic} is {remote} there" for topic, remote in sorted(renamed.items())]
    if not renamed:
        lines.append("  topics have the same names there")
    return lines

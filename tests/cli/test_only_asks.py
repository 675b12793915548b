"""Commands that show something, or are not given ``--yes``, write nothing to Kafka: each of their requests only asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from airmirror.cli.main import app
from airmirror.runbooks.migration import inventory
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Proxy
from support.deployment import Deployment
from support.following import numbered
from support.groups import commit
from support.requests import Seen
from support.topics import create_topic, produce

WHY = ("--reason", "INC-7", "--by", "ada")
SHOWN = (
    ("plan",),
    ("topics",),
    ("status",),
    ("failover", "plan"),
    ("failover", "run", "--way", "planned", *WHY),
    ("migration", "plan"),
    ("migration", "run", "--move", "shop", *WHY),
    ("flow", "freeze", *WHY),
)
SHOWN_OF_A_FROZEN_FLOW = (
    ("failover", "undo", *WHY),
    ("failback", "plan"),
    ("failback", "run", "--step", "rescue", *WHY),
    ("flow", "unfreeze", *WHY),
)


def test_what_shows_something_only_asks(
    east: Broker, west: Broker, east_proxy: Proxy, west_proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would have something to write: records to copy, a topic to make, a group to move, a flow to freeze or unfreeze."""
    monkeypatch.setattr(inventory, "MEASURED_SECONDS", 0.1)
    topic, group = create_topic(east, f"orders-{uuid4().hex[:8]}"), f"g-{uuid4().hex[:8]}"
    through = east_proxy.bootstrap, west_proxy.bootstrap
    command = Deployment(tmp_path, *through, f"{topic}.*", groups=group, **{"failover.quiet.ms": "0"})
    command.file.write_text(f"{command.file.read_text()}\n{command.flow}.move.shop.topics = {topic}.*")
    produce(east, topic, numbered(20), partition=0)
    commit(east, group, {(topic, 0): 15})
    mirrored = command("migration", "run", "--move", "shop", *WHY, "--yes", "--step", "mirror")
    assert mirrored.exit_code == 0, mirrored.output
    create_topic(east, f"{topic}-new")
    produce(east, topic, numbered(5, 20), partition=0)

    def only_asks(arguments: tuple[str, ...], run: Callable[..., Result] = command) -> None:
        seen = Seen()
        east_proxy.on_request = west_proxy.on_request = seen
        found = run(*arguments)
        assert found.exit_code in (0, 1) and "error:" not in found.output, f"{arguments}: {found.output}"
        seen.assert_asking(" ".join(arguments))

    for arguments in SHOWN:
        only_asks(arguments)
    only_asks(("hold", "add", topic, *WHY))
    both = ("--source", through[0], "--target", through[1], "--topics", topic, "--rename", f"{command.alias}.{{topic}}")
    only_asks(("compare", *both, "--groups", group), lambda *given: CliRunner().invoke(app, given))
    frozen = command("flow", "freeze", *WHY, "--yes")
    assert frozen.exit_code == 0, frozen.output
    for arguments in SHOWN_OF_A_FROZEN_FLOW:
        only_asks(arguments)

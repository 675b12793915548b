"""``airmirror status`` while a cluster is down: what the ledger knows, as of when, and what is wrong."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from airmirror.cli import show
from airmirror.cli import status as cli_status
from airmirror.cli.main import app
from airmirror.clusters.admin.client import ClusterUnreachable
from airmirror.errors import AirmirrorError
from airmirror.flows import status
from airmirror.flows.reset import NotOfTheFlow
from airmirror.ledger import Ledger
from airmirror.ledger.metrics import SEEN, Standing
from airmirror_local.ports import free_port
from support.deployment import Deployment
from support.ledgers import MAPPINGS, TOPIC_ID, mapping, written

FLOWS = ("a->b", "b->a", "c->a")


def test_what_the_ledger_knows_is_shown_while_a_cluster_is_down(tmp_path: Path) -> None:
    server = f"127.0.0.1:{free_port()}"
    command = Deployment(tmp_path, server, server, ".*")
    with closing(Ledger(command.ledger)) as ledger:
        own = ledger.flow(command.flow)
        own.load(MAPPINGS, TOPIC_ID, [written(0, mapping(0, 374_998))], {0: 1})
        own.note_standings([Standing("orders", 0, "east.orders", 374_998, 375_000)])
        own.note({}, {(SEEN, ""): 1_795_000_000.0})
    shown = command("status", flow=False)
    assert shown.exit_code == 75, shown.output
    assert "can't be reached" in shown.stdout and "as last seen at 2026-11-18 11:06:40 UTC" in shown.stdout
    assert "374,998" in shown.stdout and f"airmirror failover plan --flow '{command.flow}'" in shown.stdout
    (told,) = json.loads(command("status", "--json", flow=False).stdout)
    assert (told["lag"], told["behind"], told["seen_ms"]) == (2, 1, 1_795_000_000_000)
    assert server in told["unreachable"] and told["windows"][0]["copied"] == 374_998


@pytest.mark.parametrize(
    ("error", "code"), [(ClusterUnreachable("b", "b:1", "it burns"), 75), (NotOfTheFlow("b->a", "orders"), 1)]
)
def test_a_flow_that_can_not_be_looked_at_hides_no_other(
    error: AirmirrorError, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked(opened: Any) -> Any:
        if opened.flow.name == "b->a":
            raise error
        return SimpleNamespace(flow=opened.flow.name, needs_somebody=False, unreachable="")

    monkeypatch.setattr(status, "flow_status", looked)
    monkeypatch.setattr(cli_status, "asdict", vars)
    monkeypatch.setattr(show, "status", lambda item: [f"this is {item.flow}"])
    asked = [*_status(tmp_path), "--ledger", f"sqlite:///{tmp_path}/ledger.db"]
    shown = CliRunner().invoke(app, asked)
    assert shown.stdout.split("\n")[:2] == ["this is a->b", "this is c->a"] and shown.exit_code == code, shown.output
    assert str(error) in shown.stderr
    as_json = CliRunner().invoke(app, [*asked, "--json"])
    first, failed, last = json.loads(as_json.stdout)
    assert (first["flow"], failed["flow"], last["flow"]) == FLOWS and as_json.exit_code == code
    assert failed["error"] == {"name": type(error).__name__, "transient": code == 75, "message": str(error)}
    alone = CliRunner().invoke(app, [*asked, "--flow", "b->a"])
    assert str(error) in alone.stderr and not alone.stdout


def test_a_flow_that_its_configuration_breaks_is_told(tmp_path: Path) -> None:
    """No window of it runs, and no DAG: the status is not that all is well."""
    asked = _status(tmp_path, *(f"{name}.tasks.max = many" for name in FLOWS))
    shown = CliRunner().invoke(app, [*asked, "--json"])
    assert shown.exit_code == 1 and "a->b.tasks.max: must be a whole number" in shown.stderr
    rows = json.loads(shown.stdout)
    assert [(row["flow"], row["error"]["name"]) for row in rows] == [(name, "ConfigurationError") for name in FLOWS]
    named = CliRunner().invoke(app, [*asked, "--flow", "a->b"])
    assert named.exit_code == 2 and "a->b.tasks.max: must be a whole number" in named.stderr


def test_a_ledger_that_is_away_is_waited_for_once(tmp_path: Path) -> None:
    ledger = f"postgresql+psycopg2://me@127.0.0.1:{free_port()}/ledger"
    shown = CliRunner().invoke(app, [*_status(tmp_path), "--ledger", ledger])
    assert shown.exit_code == 75 and shown.stderr.count("can't be used") == 1, shown.output


def _status(directory: Path, *more: str) -> list[str]:
    """The command for the flows of a configuration."""
    lines = [*(f"{name}.bootstrap.servers = {name}:1" for name in "abc"), *(f"{name}.enabled = true" for name in FLOWS)]
    config = directory / "mirror.properties"
    config.write_text("\n".join(["clusters = a, b, c", *lines, *more]))
    return ["status", "--config", str(config)]

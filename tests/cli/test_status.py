"""``airmirror status`` while a cluster is down: what the ledger knows, as of when, and what is wrong."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from airmirror.ledger import Ledger
from airmirror.ledger.metrics import SEEN, Standing
from airmirror_local.ports import free_port
from support.deployment import Deployment
from support.ledgers import MAPPINGS, TOPIC_ID, mapping, written


def test_what_the_ledger_knows_is_shown_while_a_cluster_is_down(tmp_path: Path) -> None:
    server = f"127.0.0.1:{free_port()}"
    command = Deployment(tmp_path, server, server, ".*")
    with closing(Ledger(command.ledger)) as ledger:
        own = ledger.flow(command.flow)
        own.load_mappings(MAPPINGS, TOPIC_ID, [written(0, mapping(0, 374_998))], {0: 1})
        own.note_standings([Standing("orders", 0, "east.orders", 374_998, 375_000)])
        own.note({}, {(SEEN, ""): 1_795_000_000.0})
    shown = command("status", flow=False)
    assert shown.exit_code == 75, shown.output
    assert "can't be reached" in shown.stdout and "as last seen at 2026-11-18 11:06:40 UTC" in shown.stdout
    assert "374,998" in shown.stdout and f"airmirror failover plan --flow '{command.flow}'" in shown.stdout
    (told,) = json.loads(command("status", "--json", flow=False).stdout)
    assert (told["lag"], told["behind"], told["seen_ms"]) == (2, 1, 1_795_000_000_000)
    assert server in told["unreachable"] and told["windows"][0]["copied"] == 374_998

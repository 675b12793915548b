"""The console's reading of both clusters, with real ones: what differs, what will be done, sizes; and who is not let in."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from airmirror.ledger import Ledger
from airmirror.web import app
from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK, free_port
from support.console import pretend
from support.hostile import numbered
from support.topics import create_topic, produce

ROUTE = "/console/api/flows/replicate.east.west/differences"


def client_of(directory: Path, patch: pytest.MonkeyPatch, east: str, west: str, topics: str) -> TestClient:
    pretend(directory, patch)
    (directory / "mirror.properties").write_text(
        f"clusters = east, west\neast.bootstrap.servers = {east}\nwest.bootstrap.servers = {west}\n"
        f"east->west.enabled = true\neast->west.topics = {topics}\n"
    )
    Ledger(f"sqlite:///{directory / 'ledger.db'}").close()  # as the first window makes it
    return TestClient(app.build_app())


def test_what_differs_and_will_be_done_and_sizes(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = "drifts-a", "drifts-b"
    create_topic(east, small, 3, config={"max.message.bytes": "900000"})
    create_topic(west, f"east.{small}", 1, config={"max.message.bytes": "500000"})
    create_topic(east, large, 1)
    produce(east, small, numbered(100), partition=0)
    client = client_of(tmp_path, monkeypatch, east.bootstrap, west.bootstrap, f"{small},{large}")
    found = client.get(ROUTE).json()
    rows = {(row["topic"], row["what"]): row for row in found["drift"]}
    assert found["drift_in_all"] == len(rows) and found["topics"] == 2
    grown = rows[(small, "partitions")]
    assert (grown["source"], grown["target"], grown["will_change"]) == ("3", "1", True)
    kept = rows[(small, "max.message.bytes")]
    assert (kept["source"], kept["target"], kept["outcome"], kept["will_change"]) == (
        "900000",
        "500000",
        "900000",
        True,
    )
    assert rows[(large, "topic")]["outcome"] == "created with 1 partition"
    on_source, on_target = found["sizes"][small]
    assert on_source > 100 * 20 and on_target == 0 and found["sizes"][large] == [0, None]
    assert found["sizes_missing"] is None and found["flow"] == "east->west"


def test_a_cluster_that_is_gone_and_a_flow_that_may_not_be_seen(
    west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(tmp_path, monkeypatch, f"{LOOPBACK}:{free_port()}", west.bootstrap, "orders")
    monkeypatch.setattr("airmirror.web.console.differences.PATIENCE", 1.0)
    answer = client.get(ROUTE)
    assert answer.status_code == 502 and "east" in answer.json()["detail"]
    assert client.get(ROUTE.replace("east.west", "north.west")).status_code in (403, 404)


def test_acls_and_addresses_are_not_for_every_viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(tmp_path, monkeypatch, "x:1", "y:1", "orders")
    seen = pretend(tmp_path, monkeypatch)
    seen.sees_connections = False
    answer = client.get(ROUTE)
    assert answer.status_code == 403 and "connections" in answer.json()["detail"]

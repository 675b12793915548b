"""``airmirror heartbeat``: one heartbeat by hand, for a flow of the file or its reverse flow."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror_local.brokers import Broker
from support.heartbeats import east, heartbeats_deleted, west
from support.topics import admin, read_all

__all__ = ["east", "west"]


def test_one_heartbeat_by_hand(east: Broker, west: Broker, tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text(
        f"""
clusters = east, west
east.bootstrap.servers = {east.bootstrap}
west.bootstrap.servers = {west.bootstrap}
east->west.enabled = true
heartbeats.topic.replication.factor = 1
"""
    )

    def heartbeat(flow: str, *more: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["heartbeat", "--config", str(file), "--flow", flow, *more])
        return done.exit_code, done.output

    with heartbeats_deleted(east):
        status, told = heartbeat("west->east")
        assert status == 0 and "Nothing was written: --yes" in told
        assert "heartbeats" not in admin(east).list_topics(timeout=60).topics
        status, told = heartbeat("west->east", "--yes")
        assert status == 0 and "heartbeats" in told
        (records,) = read_all(east, "heartbeats").values()
        assert [record.key for record in records] == [b"\x00\x04west\x00\x04east"]
    status, told = heartbeat("east->north")
    assert status == 2 and "east->west" in told

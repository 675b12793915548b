"""The tasks for consumer groups, as the DAG's operators call it: intervals of their own, and no group lost."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from airmirror.config import parse
from airmirror.flows.post_window import CHECKPOINTS, GROUP_OFFSETS, tasks_due
from airmirror.flows.selection import Selection
from airmirror.on_airflow.dags.replicate import replicate_dag
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.tasks.window import do_task
from airmirror_local.brokers import Broker
from support.flows import mirror
from support.following import patiently
from support.groups import commit, committed
from support.topics import Record, produce, read_all


def test_checkpoints_and_group_offsets_keep_their_intervals(
    east: Broker, west: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    group = f"billing-{uuid.uuid4().hex[:8]}"
    settings = {
        "groups": group,
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "0.5",
        "checkpoints.topic.replication.factor": "1",
    }
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    flow = mirror(east, west, tmp_path, settings=settings, ledger_url=ledger)
    produce(east, flow.topic, [Record(b"v%d" % n) for n in range(50)])
    flow.run()
    config, name = tmp_path / "mirror.properties", flow.flow.name
    alias = flow.flow.source.alias
    lines = {
        "clusters": f"{alias}, west",
        f"{alias}.bootstrap.servers": east.bootstrap,
        "west.bootstrap.servers": west.bootstrap,
        f"{name}.enabled": "true",
        f"{name}.topics": flow.topic,
    }
    lines |= {f"{name}.{key}": value for key, value in settings.items()}
    config.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
    place = Deployment(config=config, ledger=ledger, expectations=tmp_path, alert_receivers=(), metrics_conn_id="")
    assert tasks_due(flow.opened) == {"emit_checkpoints", "sync_group_offsets"}

    for position in (20, 30):
        commit(east, group, {(flow.topic, 0): position})
        for attempt in patiently():
            with attempt:
                assert GROUP_OFFSETS in tasks_due(flow.opened)
        with caplog.at_level("INFO"):
            do_task(place, name, CHECKPOINTS, f"checkpoints-{position}", Selection())
            do_task(place, name, GROUP_OFFSETS, f"groups-{position}", Selection())
        assert committed(west, group) == {(flow.remote_topic, 0): position}
    for attempt in patiently():
        with attempt:
            assert tasks_due(flow.opened) == {"sync_group_offsets"}
    assert "1 checkpoint written" in caplog.text
    assert "not yet: emit.checkpoints.interval.seconds" in caplog.text
    assert "not yet: sync.group.offsets" not in caplog.text
    (checkpoints,) = read_all(west, f"{alias}.checkpoints.internal").values()
    assert len(checkpoints) == 1
    (row,) = flow.opened.ledger.group_offsets()
    assert (row.group, row.position, row.downstream, row.reason) == (group, 30, 30, "")


def test_groups_follow_whatever_failed_and_stop_nothing_themselves() -> None:
    """Run after a failed copy too; the next window waits for none of them, only the run's state does."""
    lines = ["clusters = a, b", "a.bootstrap.servers = x:1", "b.bootstrap.servers = y:1", "a->b.enabled = true"]
    flow = parse("\n".join([*lines, "a->b.sync.group.offsets.enabled = true"]), "test").flow("a->b")
    tasks = replicate_dag(flow).task_dict
    for name, before in (("emit_checkpoints", "emit_offset_syncs"), ("sync_group_offsets", "emit_checkpoints")):
        assert tasks[name].upstream_task_ids == {before} and tasks[name].trigger_rule == "all_done"
    assert tasks["emit_offset_syncs"].trigger_rule == "all_done"
    after = tasks["emit_checkpoints"].get_flat_relative_ids(upstream=False)
    assert after == {"sync_group_offsets", "done"}

"""A run that the trigger form narrows down, by its tasks' own functions; test_runs has the same on a real Airflow."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.tasks import window as work
from airmirror.on_airflow.tasks.telling import NotMirrored
from airmirror.on_spark import windows as spark_windows
from airmirror.quality.suites import OWN
from airmirror_local.brokers import Broker
from support.flows import at_once, mirror
from support.following import numbered
from support.topics import produce, read_all


def test_a_run_is_narrowed_down_to_partitions_a_dry_run_and_known_topics(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flow = mirror(east, west, tmp_path, partitions=2)
    place = replace(deployment(), expectations=OWN)
    for partition in range(2):
        produce(east, flow.topic, numbered(40), partition=partition)

    def opened(_place: object, _name: str, selection: Selection) -> nullcontext[object]:
        return nullcontext(replace(flow.opened, flow=selection.applied(flow.flow)))

    monkeypatch.setattr(work, "opened_flow", opened)
    monkeypatch.setattr(spark_windows, "on_spark", lambda *_: nullcontext((lambda _: 2, at_once)))
    name = flow.flow.name
    with caplog.at_level("INFO"):
        work.sync_topics(place, name, Selection(dry_run=True))
    assert f"Would replicate {flow.topic}-0" in caplog.text and "nothing was written" in caplog.text
    with pytest.raises(NotMirrored, match="ordres"):
        work.sync_topics(place, name, Selection(topics=("ordres",)))
    narrowed = Selection(topics=(flow.topic,), partitions=(1,), verify="acks")
    result = work.replicate(place, name, "manual__1#1-abcd", "sc://nowhere", narrowed)
    (done,) = flow.opened.ledger.of_window("manual__1#1-abcd")
    assert result.copied == done.copied == 40 and not done.was_read_back
    assert {number: len(found) for number, found in read_all(west, flow.remote_topic).items()} == {0: 0, 1: 40}

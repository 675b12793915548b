"""Windows up to the ends of ranges: as a spark-submit application runs them for audits and replays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import javaproperties
import pytest

from airmirror.flows.audit import Range
from airmirror.on_spark import ranges as on_ranges
from airmirror.on_spark.job import DONE, FINAL, _say, main
from airmirror.on_spark.library import digest
from airmirror.on_spark.ranges import as_text, read_ranges
from airmirror.runbooks.failback.returning import ReturnRefused
from airmirror.windows.window import run_window
from airmirror_local.brokers import Broker
from support.flows import in_this_process, mirror
from support.topics import Record, produce, read_all


def test_an_application_replicates_up_to_the_ends_in_as_many_windows_as_it_takes(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = mirror(east, west, tmp_path, partitions=2)
    for partition in (0, 1):
        records = [Record(b"%d" % n + b"x" * 12_000) for n in range(40)]
        produce(east, flow.topic, records, partition=partition, records_per_batch=5)
    names: list[str] = []

    def run(prepared, _spark, order):  # type: ignore[no-untyped-def]
        names.append(order.window)
        opened = prepared.opened
        short = replace(opened.flow, window=replace(opened.flow.window, max_bytes=60_000))
        return run_window(short, opened.ledger, prepared.topics, in_this_process, replace(order, slots=lambda _: 1))

    monkeypatch.setattr(on_ranges, "run", run)
    ranges = tmp_path / "ranges.json"
    given = [Range(flow.topic, 0, 10, 30)]
    ranges.write_text(as_text(given))
    assert read_ranges(ranges) == given
    config = tmp_path / "job.properties"
    lines = {line.key: line.value for line in flow.opened.configuration.settings}
    config.write_text(javaproperties.dumps(lines, timestamp=None))
    monkeypatch.setenv("AIRMIRROR_LEDGER", f"sqlite:///{tmp_path / 'job.db'}")
    arguments = ["--config", str(config), "--flow", flow.flow.name, "--window", "w", "--ranges", str(ranges)]
    assert main([*arguments, "--library", "0" * 32]) == FINAL and not names  # that of another image
    assert main([*arguments, "--library", digest(), "--no-advance", "--before"]) == DONE
    assert len(names) > 1 and names[:2] == ["w", "w-2"]
    remote = read_all(west, flow.remote_topic)
    assert {number: len(found) for number, found in remote.items()} == {0: 30, 1: 0}  # in order: 0 to 9 too
    assert flow.opened.ledger.verified() == {}  # somebody else judges


def test_each_line_of_an_error_is_one_that_airflow_shows(capsys: pytest.CaptureFixture[str]) -> None:
    _say(ReturnRefused("east->west", ("orders is not frozen", "bills is not frozen")))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1 and all(line.startswith("airmirror: ") for line in lines)

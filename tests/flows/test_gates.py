"""One gate for everybody: what a flow's suites hold, no command lets pass by leaving them out."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.flows import gates
from airmirror.flows.gates import Expectations, expectations_of, verify_flow
from airmirror.flows.prepare import prepare
from airmirror.on_spark import windows as spark_windows
from airmirror.on_spark.windows import RunWindow, run_judged
from airmirror.windows.errors import GateFailed, PartitionHeld, utc
from airmirror.windows.judging import ENGINE_ALONE
from airmirror.windows.window import WindowOrder, run_window
from airmirror.wire.mappings import GATE
from airmirror_local.brokers import Broker
from support.flows import Mirror, in_this_process, mirror
from support.topics import Record, produce

SUITE = """
name: at-most-ten
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: %s, max_value: 10}
    notes: Stocks must stay quiet at the weekend.
"""


@pytest.fixture(autouse=True)
def slots_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(prepared, _spark, order):  # type: ignore[no-untyped-def]
        opened = prepared.opened
        return run_window(
            opened.flow, opened.ledger, prepared.topics, in_this_process, replace(order, slots=lambda _: 2)
        )

    monkeypatch.setattr(spark_windows, "run", run)


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    directory = tmp_path / "expectations"
    directory.mkdir()
    (directory / "mine.yaml").write_text(SUITE % "copied")
    return directory


@pytest.fixture
def flow(east: Broker, west: Broker, tmp_path: Path) -> Mirror:
    found = mirror(east, west, tmp_path, partitions=2)
    for partition, count in ((0, 50), (1, 5)):
        produce(east, found.topic, [Record(b"value-%d" % n) for n in range(count)], partition=partition)
    return found


def window(flow: Mirror, by: Expectations) -> RunWindow:
    return run_judged(prepare(flow.opened), None, WindowOrder(f"w-{uuid.uuid4().hex[:6]}"), by)


def verified(flow: Mirror) -> dict[int, int]:
    return {partition: found.offset for (_, partition), found in flow.opened.ledger.verified().items()}


def test_a_window_by_hand_is_judged_by_the_flows_suites(flow: Mirror, suites: Path) -> None:
    first = window(flow, expectations_of(suites))
    rows = {row.partition: row for row in first.result.rows}
    assert not first.result.is_verified and first.validation is not None
    assert isinstance(rows[0].error, GateFailed) and not rows[0].verified
    assert "Stocks must stay quiet" in rows[0].error.reason
    assert rows[1].verified and rows[1].error is None and verified(flow) == {1: 4}
    # Nothing new, and no suite asked: what is held stays held, whoever runs the window.
    again = window(flow, expectations_of(suites, wanted=False))
    (row,) = again.result.rows
    assert row.partition == 0 and isinstance(row.error, PartitionHeld) and not again.result.is_verified
    assert verified(flow) == {1: 4} and flow.run().is_verified is False  # the engine's own window neither
    assert verified(flow) == {1: 4} and [key[1] for key in flow.opened.ledger.holds()] == [0]
    # The cause is mended: the gate lets it pass, and the next window copies what has come meanwhile.
    (suites / "mine.yaml").unlink()
    produce(flow.source, flow.topic, [Record(b"later-%d" % n) for n in range(5)], partition=0)
    assert window(flow, expectations_of(suites)).result.is_verified
    assert verified(flow) == {0: 49, 1: 4} and not flow.opened.ledger.holds()
    assert window(flow, expectations_of(suites)).result.is_verified
    assert verified(flow) == {0: 54, 1: 4} and flow.assert_equal() == 60


def test_the_engines_checks_alone_say_so(flow: Mirror, suites: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "find_spec", lambda name: None)
    by = expectations_of(suites)
    assert by.suites is None and "Great Expectations is not installed" in str(by)
    found = window(flow, by)
    assert found.result.is_verified and found.validation is None and verified(flow) == {0: 49, 1: 4}
    judges = [each.window for each in flow.opened.ledger.verified().values()]
    assert all(judge.endswith(ENGINE_ALONE) for judge in judges)
    assert by.alone in str(expectations_of(suites, wanted=True)) != str(expectations_of(suites, wanted=False))


def test_a_partition_is_held_since_it_failed_first(flow: Mirror, suites: Path) -> None:
    key = (flow.topic, 0)
    first = window(flow, expectations_of(suites)).result.window
    held = flow.opened.ledger.holds()[key]
    assert held.by == GATE and held.window == first and "cluster" not in held.reason
    (verdict,) = verify_flow(flow.opened, expectations_of(suites), window="second")[0].verdicts
    assert verdict.held == held and verdict.is_known
    assert str(verdict).endswith(f"(still, since {utc(held.time_ms)}, first in {first})")
    assert flow.opened.ledger.holds()[key] == held
    (suites / "mine.yaml").write_text(SUITE % "offsets")  # it fails for another reason by now
    (verdict,) = verify_flow(flow.opened, expectations_of(suites), window="third")[0].verdicts
    assert not verdict.is_known and str(verdict).startswith("A NEW CAUSE: ")
    now = flow.opened.ledger.holds()[key]
    assert (now.time_ms, now.window) == (held.time_ms, first) and "'offsets'" in now.reason

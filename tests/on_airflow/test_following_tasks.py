"""The tasks of a flow whose windows follow the log, without Airflow's scheduler; test_runs.py has a run of them."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.config import parse
from airmirror.flows import leases
from airmirror.flows.post_window import POST_WINDOW_TASKS
from airmirror.flows.selection import Selection
from airmirror.on_airflow.dags.replicate import deadline, replicate_dag
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.tasks import window as work
from airmirror.on_airflow.tasks.submit import Submission
from airmirror.on_airflow.tasks.telling import NotVerified, tell_result
from airmirror.on_spark import job
from airmirror.on_spark import windows as spark_windows
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.errors import FlowBusy
from airmirror.windows.results import WindowResult
from airmirror_local.brokers import Broker
from support.flows import at_once, mirror
from support.following import SETTINGS, beside, ended_by_event, numbered, patiently
from support.groups import await_committed, commit
from support.topics import produce, read_all

SUITE = """
name: not-so-many
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: copied, max_value: 60}
    notes: Never so many at once.
"""
FOLLOWS = """
clusters = a, b
a.bootstrap.servers = one:9092
b.bootstrap.servers = two:9092
a->b.enabled = true
a->b.window.follow.ms = 900000
"""


class Given:
    """In the place of ``opened_flow``: an opened flow that is there already."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def __call__(self, *_: object) -> Any:
        return nullcontext(self.found)


def test_the_same_gate_judges_meanwhile_and_last(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A partition that the suites object to is held meanwhile, told as new by the last gate, and all is an asset's then."""
    time_is_up, group = ended_by_event(monkeypatch), f"billing-{tmp_path.name}"
    settings = SETTINGS | {
        "groups": group,
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "0.5",
    }
    flow = mirror(east, west, tmp_path, partitions=2, settings=settings)
    suite = tmp_path / "expectations" / "suite.yaml"
    suite.parent.mkdir()
    suite.write_text(SUITE)
    place = replace(deployment(), expectations=suite.parent)
    produce(east, flow.topic, numbered(50), partition=0)

    def verified() -> dict[int, int]:
        return {key[1]: found.offset for key, found in flow.opened.ledger.verified().items()}

    def meanwhile() -> None:
        commit(east, group, {(flow.topic, 0): 30})
        await_committed(west, group, {(flow.remote_topic, 0): 30})
        produce(east, flow.topic, numbered(50, 50), partition=0)
        for attempt in patiently():
            with attempt:
                assert verified() == {0: 99}
        produce(east, flow.topic, numbered(100, 200), partition=1)
        for attempt in patiently():
            with attempt:
                assert flow.opened.ledger.holds()

    def execute(slots: Sequence[Slot]) -> list[SlotResult]:
        with beside(meanwhile, time_is_up):
            return at_once(slots)

    monkeypatch.setattr(spark_windows, "on_spark", lambda *_: nullcontext((lambda _: 2, execute)))
    monkeypatch.setattr(work, "opened_flow", Given(flow.opened))
    name, run = flow.flow.name, "manual__1"
    with caplog.at_level("INFO"):
        result = work.replicate(place, name, f"{run}#1-abcd", "sc://nowhere", Selection())
    assert result.copied == 200 and result.followed is not None and str(result.followed) in caplog.text
    passed, shown = list[work.Received](), list[str]()
    telling = {"passed": passed.extend, "show": shown.append}
    with pytest.raises(NotVerified) as failed:
        work.verify(place, name, "manual__1#verify#1-1", run, Selection(), followed=run, **telling)
    assert shown, "a page, of a task that fails too"
    assert [(each.records, list(each.offsets)) for each in passed] == [(100, [0])], "what passed is told all the same"
    told = json.loads(json.dumps([each.as_told for each in passed]))
    assert work.still_to_tell(place, name, told) == tuple(passed)
    for forged in (
        {"offsets": {"1": [0, 5]}},
        {"offsets": {"0": [0, 10_000]}},
        {"remote_topic": "x"},
        {"records": "y"},
    ):
        assert work.still_to_tell(place, name, [told[0] | forged]) == ()
    assert work.still_to_tell(place, name, "nonsense") == ()
    assert (failed.value.failed, failed.value.still) == (1, 0), "nobody was told of it before"
    with pytest.raises(NotVerified) as again:
        work.verify(place, name, "manual__1#verify#2-1", "", Selection(), followed=run)
    assert (again.value.failed, again.value.still) == (0, 1)
    suite.write_text(SUITE.replace("60", "100"))
    (received,) = work.verify(place, name, "manual__1#verify#3-1", "", Selection(), followed=run)
    assert received.records == 200 and received.remote_topic == flow.remote_topic
    last = {number: found[-1].offset for number, found in read_all(west, flow.remote_topic).items()}
    assert {number: start for number, (start, _) in received.offsets.items()} == {0: 0, 1: 0}
    assert {number: end for number, (_, end) in received.offsets.items()} == {n: at + 1 for n, at in last.items()}
    assert verified() == {0: 99, 1: 99} and flow.assert_equal() == 200


def test_a_window_that_has_followed_an_idle_log_is_no_empty_one(caplog: pytest.LogCaptureFixture) -> None:
    """The next one begins at once, and nobody is told that Spark was not needed."""
    idle = WindowResult("a->b", "w", (), partitions=3, seconds=61.0, phases={"copy": 60.2}, is_cut=False)
    assert idle.has_waited and not replace(idle, phases={"offsets and progress": 0.1}).has_waited
    with caplog.at_level("INFO"):
        tell_result(idle)
    assert "Followed 3 partitions for 60 s; nothing came." in caplog.text and "not needed" not in caplog.text


def test_tasks_wait_as_long_as_a_window_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = parse(FOLLOWS, "mirror.properties").flow("a->b")
    tasks = replicate_dag(flow).task_dict
    assert tasks["verify_window"].follows, "its assets count what was verified meanwhile"
    limit = tasks["replicate_window"].execution_timeout
    assert limit is not None and limit >= timedelta(minutes=30) + timedelta(minutes=5)
    alert = deadline(flow)
    assert alert is not None
    interval = alert.interval
    assert isinstance(interval, timedelta) and interval >= limit
    waited: list[float] = []
    monkeypatch.setattr(leases, "stop_after_delay", lambda seconds: waited.append(seconds) or (lambda _state: True))

    def busy() -> None:
        raise FlowBusy("a->b", "w", "host:1", 0)

    for each in (flow, replace(flow, window=replace(flow.window, follow_ms=0))):
        with pytest.raises(FlowBusy):
            work.when_free(each, busy)
    assert waited == [960, 180]


def test_an_application_follows_only_where_it_knows_the_gate_that_judges_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow's; a driver in a cluster does not have its suites."""
    flow = mirror("east:9", "west:9", tmp_path, topic="orders", settings=SETTINGS)
    found: list[Any] = []
    monkeypatch.setattr(job, "run", lambda _prepared, _spark, order: found.append(order.following))
    monkeypatch.delenv("AIRMIRROR_EXPECTATIONS", raising=False)
    needed = ["--config", "c", "--flow", flow.flow.name, "--window", "w", "--no-advance"]
    for more in ([], ["--expectations", str(tmp_path)], ["--expectations", str(tmp_path), "--no-expectations"]):
        given = job._parser().parse_args([*needed, *more])
        assert job._flagged(given) == list(POST_WINDOW_TASKS)
        job._window(given, SimpleNamespace(opened=flow.opened), Selection())  # type: ignore[arg-type]
    assert [each is None for each in found] == [True, False, True] and found[1].gate is not None
    for is_cluster, told in ((False, str(deployment().expectations)), (True, "")):
        submission = Submission(deployment(), "a->b", "w", "spark_test", Selection(), is_cluster=is_cluster)
        assert submission._expectations() == told


@pytest.mark.parametrize(("follows", "attempt", "told"), [(False, 1, ""), (False, 2, "r"), (True, 1, "r")])
def test_a_gate_that_is_tried_again_tells_what_it_had_let_pass_before(
    monkeypatch: pytest.MonkeyPatch, follows: bool, attempt: int, told: str
) -> None:
    """The attempt that let it pass has failed for other partitions, and told no asset."""
    asked: list[str] = []
    monkeypatch.setattr(work, "verify", lambda *_, followed, **__: asked.append(followed) or ())
    flow = parse(FOLLOWS if follows else FOLLOWS.replace("900000", "0"), "f").flow("a->b")
    gate: Any = replicate_dag(flow).task_dict["verify_window"]
    gate.execute({"ti": SimpleNamespace(try_number=attempt), "run_id": "r", "params": {}})
    assert asked == [told]


def test_the_gate_trusts_the_windows_of_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those run in a row have a number, those of another attempt another name; what XCom says counts for nothing."""
    opened = SimpleNamespace(flow=parse(FOLLOWS, "f").flow("a->b"), ledger=None)
    trusted: list[Container[str]] = []

    def judge(*_: object, **how: Any) -> Any:
        trusted.append(how["trusted"])
        raise FlowBusy("a->b", "w", "host:1", 0)

    monkeypatch.setattr(work, "opened_flow", Given(opened))
    monkeypatch.setattr(work, "verify_flow", judge)
    monkeypatch.setattr(work, "when_free", lambda _flow, doing: doing())
    gate: Any = replicate_dag(opened.flow).task_dict["verify_window"]
    windows = ("r#1-ab", "r#1-ab-2", "r#2-cd", "other#1-ab", "r2#1-ab", "r", "")
    for number, believed in ((1, {"r#1-ab", "r#1-ab-2", "r#2-cd"}), (2, set())):
        ti = SimpleNamespace(try_number=number, xcom_pull=lambda **_: "other#1-ab")
        with pytest.raises(FlowBusy):
            gate.execute({"ti": ti, "run_id": "r", "params": {}})
        assert {window for window in windows if window in trusted[-1]} == believed

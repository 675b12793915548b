"""Single tasks and callbacks, without a running Airflow: each test ends a mutation that no test had noticed."""

from __future__ import annotations

import asyncio
import logging
import stat
from base64 import b64decode
from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.cncf.kubernetes import kube_client
from airflow.sdk import timezone
from airflow.sdk.exceptions import AirflowSkipException, DagRunTriggerException, DownstreamTasksSkipped, TaskDeferred

from airmirror.config import parse
from airmirror.flows import maintenance as flow_maintenance
from airmirror.flows import reset as reset_work
from airmirror.flows.audit import Range
from airmirror.flows.measure import LATE
from airmirror.flows.prepare import Opened, prepare
from airmirror.flows.selection import Selection
from airmirror.ledger import FlowLedger, Ledger
from airmirror.offsets.writing import RecordsNotWritten
from airmirror.on_airflow.dags.audit import CompareRange, audit_dag, places
from airmirror.on_airflow.dags.decide import CarryOut, decide_dag
from airmirror.on_airflow.dags.maintenance import Prune
from airmirror.on_airflow.dags.operators import HELD, INCIDENT, AskToDecide, Idle
from airmirror.on_airflow.dags.rehearsal import rehearsal_dag
from airmirror.on_airflow.dags.replicate import replicate_dag
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.question import ACCEPT_LOSS, AGAIN, KEEP, MOST_ASKED
from airmirror.on_airflow.tasks import audit as audit_work
from airmirror.on_airflow.tasks import decide as decide_work
from airmirror.on_airflow.tasks import window as window_work
from airmirror.on_airflow.tasks.approvals import Approval
from airmirror.on_airflow.tasks.audit import BadRange, NoOffsets, OffsetRange
from airmirror.on_airflow.tasks.driver import CONFIG, SECRETS
from airmirror.on_airflow.tasks.submit import Submission, SubmissionBounds
from airmirror.on_airflow.tasks.telling import NotMirrored, NotVerified, tell_progress, tell_result
from airmirror.on_airflow.triggers import growth as growth_trigger
from airmirror.on_airflow.triggers.deadlines import run_is_late
from airmirror.on_spark import ranges
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Outcome
from airmirror.windows.errors import FlowBusy, GateFailed, PartitionHeld
from airmirror.windows.judging import Verdict, Verification
from airmirror.windows.progress import CopyProgress
from airmirror.windows.results import Row, WindowResult
from airmirror.windows.window import run_window
from airmirror.wire.mappings import Action, Decision
from airmirror_local.brokers import Broker
from flows.test_decisions import DIFFERING, copied_flow, held_flow, put_in_place, records
from support.flows import in_this_process, mirror
from support.topics import Record, produce, read_all

REHEARSED = """
clusters = a, b
a.bootstrap.servers = one:9092
b.bootstrap.servers = two:9092
a->b.enabled = true
a->b.failover.rehearsal.schedule = @daily
a->b.move.shop.topics = orders
a->b.move.stock.topics = stock
a->b.move.rehearsal.schedule = @weekly
"""

CONFIGURATION = """
clusters = a, b
a.bootstrap.servers = one:9092
b.bootstrap.servers = two:9092
a->b.enabled = true
"""


class Task:
    """A task instance as operators see it: what others have told, and what this one tells."""

    try_number = 1
    failed = 0

    def __init__(self, *, open_runs: Collection[str] = (), **told: Any) -> None:
        self.told, self.pushed, self.open_runs = told, dict[str, Any](), open_runs

    def xcom_pull(self, task_ids: str, key: str = "return_value") -> Any:
        return self.told.get(f"{task_ids}_{key}")

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def get_dr_count(self, dag_id: str, run_ids: list[str], states: list[str]) -> int:
        (run,) = run_ids
        return self.failed if states == ["failed"] else int(run in self.open_runs)


def opened(tmp_path: Path) -> Opened:
    configuration = parse(CONFIGURATION, "mirror.properties")
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    return Opened(configuration, configuration.flow("a->b"), ledger.flow("a->b"))


class Given:
    """In the place of ``opened_flow``: an opened flow that is there already."""

    def __init__(self, found: Opened) -> None:
        self.found = found

    def __call__(self, *_: object) -> Given:
        return self

    def __enter__(self) -> Opened:
        return self.found

    def __exit__(self, *_: object) -> None: ...


@pytest.mark.parametrize("empty", [True, None])
def test_a_continuous_flow_waits_after_an_empty_and_after_a_failed_window(empty: bool | None) -> None:
    idle, begun = Idle(task_id="idle", idle_ms=7_000), timezone.utcnow()
    with pytest.raises(TaskDeferred) as deferred:
        idle.execute({"ti": Task(replicate_window_empty=empty)})  # type: ignore[typeddict-item]
    trigger: Any = deferred.value.trigger
    assert trigger.moment >= begun + timedelta(seconds=7)


def test_a_continuous_flow_does_not_wait_after_a_window_with_records() -> None:
    with pytest.raises(AirflowSkipException):
        Idle(task_id="idle", idle_ms=7_000).execute({"ti": Task(replicate_window_empty=False)})  # type: ignore[typeddict-item]


def test_a_run_that_does_not_end_is_counted_and_one_that_has_ended_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRMIRROR_LEDGER", f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")

    def late() -> float:
        return float(ledger.flow("a->b").numbers().get((LATE, ""), 0))

    for state, count in (("failed", 0), ("success", 0), ("running", 1), ("queued", 2)):
        asyncio.run(run_is_late("a->b", {"dag_run": {"dag_run_id": "r", "state": state}}))
        assert late() == count, state
    ledger.close()


def test_the_growth_watcher_sees_how_much_the_source_has(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = mirror(east, west, tmp_path, partitions=2)
    produce(east, flow.topic, [Record(b"v")] * 7)
    loaded = SimpleNamespace(configuration=flow.opened.configuration)
    monkeypatch.setattr("airmirror.topics.sound.sound", lambda _: loaded)
    monkeypatch.setattr("airmirror.on_airflow.connections.with_connections", lambda _, found: found)
    with closing(growth_trigger.WatchedSource(flow.flow.name)) as source:
        assert source.size() == 7
        produce(east, flow.topic, [Record(b"v")] * 5)
        assert source.size() == 12


def test_maintenance_prunes_its_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def prune(found: Opened, days: int, tell: object) -> flow_maintenance.Pruned:
        asked.append((found.flow.name, days))
        return flow_maintenance.Pruned(3, 4)

    monkeypatch.setattr(flow_maintenance, "prune", prune)
    monkeypatch.setattr("airmirror.on_airflow.tasks.window.opened_flow", Given(opened(tmp_path)))
    Prune(task_id="prune", flow="a->b", days=30).execute({"params": {}})  # type: ignore[typeddict-item]
    assert asked == [("a->b", 30)]


def test_what_was_decided_is_carried_out_and_judged(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = held_flow(copied_flow(east, west, tmp_path))
    judged: list[dict[str, Any]] = []
    monkeypatch.setattr(decide_work, "opened_flow", Given(held.opened))
    monkeypatch.setattr(decide_work, "verify", lambda *of_run, **given: judged.append(given | {"window": of_run[2]}))
    answer = Approval(ACCEPT_LOSS, "see OPS-9", "ada", timezone.utcnow(), [[held.topic, 0, 59]])
    decide_work.carry_out(deployment(), held.flow.name, "w9", answer, name="an incident", selection=Selection())
    (reset,) = held.opened.ledger.resets()
    assert (reset.lost_first, reset.lost_end, reset.by, reset.reason) == (30, 32, "ada", "see OPS-9")
    (decision,) = held.opened.ledger.decisions()
    assert (decision.action, decision.by) == (Action.ACCEPT_LOSS, "ada")
    assert [(given["window"], given["waived"]) for given in judged] == [("w9", {TopicPartition(held.topic, 0): 59})]


@pytest.mark.parametrize(("option", "there"), [(AGAIN, DIFFERING), (ACCEPT_LOSS, DIFFERING[:50])])
def test_what_a_decision_began_is_finished_by_the_tasks_next_attempt(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, there: list[Record]
) -> None:
    """Its reset is committed, and nothing is held any more, before offset syncs and checkpoints go back with it."""
    held = held_flow(copied_flow(east, west, tmp_path))
    if there != DIFFERING:  # cut since then
        put_in_place(held, {0: there, 1: records(0, 60)})
    verified: list[dict[str, Any]] = []
    monkeypatch.setattr(decide_work, "opened_flow", Given(held.opened))
    monkeypatch.setattr(decide_work, "verify", lambda *_, **given: verified.append(given))
    answer = Approval(option, "see OPS-9", "ada", timezone.utcnow(), [[held.topic, 0, 59]])

    def carry_out() -> None:
        decide_work.carry_out(deployment(), held.flow.name, "w9", answer, name="an incident", selection=Selection())

    def fails(*_: object) -> None:
        raise RecordsNotWritten("west", "checkpoints", "a fault")

    with monkeypatch.context() as faulty, pytest.raises(RecordsNotWritten):
        faulty.setattr(reset_work, "rewind_checkpoints", fails)
        carry_out()
    assert not held.opened.ledger.holds() and not verified
    rewound: list[Any] = []
    monkeypatch.setattr(reset_work, "rewind_checkpoints", lambda *given: rewound.append(given[2]))
    carry_out()
    remote = TopicPartition(held.remote_topic, 0)
    assert [sorted(starts) for starts in rewound] == [[remote]]
    assert len(held.opened.ledger.resets()) == (1 if option == AGAIN else 2)
    assert len(held.opened.ledger.decisions()) == 1
    assert len(verified) == (0 if option == AGAIN else 1)


def test_a_decision_that_is_tried_again_is_written_down_once(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = held_flow(copied_flow(east, west, tmp_path))
    monkeypatch.setattr(decide_work, "opened_flow", Given(held.opened))
    monkeypatch.setattr(decide_work, "verify", lambda *_, **__: None)
    answer = Approval(ACCEPT_LOSS, "see OPS-9", "ada", timezone.utcnow(), [[held.topic, 0, 59]])

    def carry_out() -> None:
        decide_work.carry_out(deployment(), held.flow.name, "w9", answer, name="an incident", selection=Selection())

    def busy(*_: object, **__: object) -> None:
        raise FlowBusy(held.flow.name, "w", "host:1", 0)

    with monkeypatch.context() as meanwhile, pytest.raises(FlowBusy):
        meanwhile.setattr(decide_work, "when_free", busy)
        carry_out()
    carry_out()
    assert [each.action for each in held.opened.ledger.decisions()] == [Action.ACCEPT_LOSS]


def test_where_to_answer_is_told_and_a_dag_that_is_off_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/mirror/")
    monkeypatch.setattr("airmirror.on_airflow.dags.operators.dag_is_paused", lambda dag_id: dag_id == "decide.a.b")
    ask = AskToDecide(task_id="ask_to_decide", trigger_dag_id="decide.a.b")
    held = [["orders", 0, 49]]
    told = {"verify_window_held": held, "verify_window_incident": "incident__1"}
    with caplog.at_level(logging.INFO), pytest.raises(DagRunTriggerException):  # as Airflow starts runs
        ask.execute({"ti": Task(**told)})  # type: ignore[typeddict-item]
    assert ask.conf == {"held": held} and ask.trigger_run_id == "incident__1" and not ask.reset_dag_run
    again = Task(**told)
    again.failed = 1
    with pytest.raises(DagRunTriggerException) as asked_anew:  # nobody is asked by a run that has failed
        ask.execute({"ti": again})  # type: ignore[typeddict-item]
    assert asked_anew.value.reset_dag_run
    page = "https://airflow.example/mirror/dags/decide.a.b/runs/incident__1/tasks/ask/required_actions"
    assert page in caplog.text
    assert "decide.a.b is paused, so that it asks no operator: switch it on." in caplog.text
    with pytest.raises(AirflowSkipException):
        ask.execute({"ti": Task()})  # type: ignore[typeddict-item]


def test_what_was_kept_is_asked_about_again_once_somebody_has_decided_about_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another run of ``decide.…``; not as long as an earlier one is open, in which what was answered may be carried out."""
    error = GateFailed(cluster="a", topic="orders", partition=0, first=0, last=49, reason="late")
    judged = Verification((), (Verdict(topic="orders", partition=0, offset=49, records=50, error=error),))
    gate = decide_gate(tmp_path, monkeypatch, judged)
    decided = list[Decision]()
    monkeypatch.setattr(FlowLedger, "decisions", lambda _: decided)

    def asks(*open_runs: str) -> str:
        task = Task(open_runs=open_runs)
        with pytest.raises(NotVerified):
            gate.work({"ti": task, "run_id": "r"}, Selection())
        assert task.pushed[HELD] == [["orders", 0, 49]]
        return str(task.pushed[INCIDENT])

    def decide(topic: str, time_ms: int) -> None:
        decided.append(
            Decision(topic, 0, time_ms=time_ms, action=Action.VERIFY_AGAIN, offset=50, reason="mended", by="ada")
        )

    first = asks()
    assert asks() == asks(first) == first, "what is kept held stays the same incident"
    decide("payments", 7)
    assert asks() == first
    decide("orders", 8)
    second = asks()
    assert second != first and asks() == asks(second) == second
    assert asks(first) == first
    decide("orders", 9)
    assert asks() not in (first, second) and asks(first) == first and asks(second) == second


def decide_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judged: Verification) -> Any:
    """The task of a gate that has judged so."""
    monkeypatch.setattr(window_work, "opened_flow", Given(opened(tmp_path)))
    monkeypatch.setattr(window_work, "verify_flow", lambda *_, **__: (judged, None))
    return replicate_dag(parse(CONFIGURATION, "mirror.properties").flow("a->b")).task_dict["verify_window"]


def test_what_one_question_has_no_place_for_is_asked_about_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept held, it all stays the same incident: no window asks again."""
    held = [SimpleNamespace(incident=("orders", number, 49)) for number in range(MOST_ASKED + 2)]
    every = [list(item.incident) for item in held]

    def held_by_gate(_: object, only: set[tuple[str, int, int]] | None) -> list[Any]:
        return [item for item in held if only is None or item.incident in only]

    monkeypatch.setattr("airmirror.on_airflow.dags.operators.dag_is_paused", lambda dag_id: False)
    monkeypatch.setattr(decide_work, "held_by_gate", held_by_gate)
    monkeypatch.setattr(decide_work, "opened_flow", Given(opened(tmp_path)))
    tasks: dict[str, Any] = decide_dag(parse(CONFIGURATION, "mirror.properties").flow("a->b")).task_dict

    def left(conf: dict[str, Any], shown: list[list[Any]]) -> Any:
        given = SimpleNamespace(option=KEEP, reason="", by="ada", at=timezone.utcnow(), shown=shown)
        monkeypatch.setattr(CarryOut, "answer", lambda *_: given)
        task = Task()
        tasks["carry_out"].work({"ti": task, "run_id": "r", "dag_run": SimpleNamespace(conf=conf)}, Selection())
        assert (INCIDENT in task.pushed) == bool(task.pushed.get(HELD))
        return task.pushed.get(HELD)

    rest = left({"held": every}, every[:MOST_ASKED])
    assert rest == left({}, every[:MOST_ASKED]) == every[MOST_ASKED:]
    with pytest.raises(DagRunTriggerException):
        tasks["ask_about_rest"].execute({"ti": Task(carry_out_held=rest, carry_out_incident="incident__2")})
    asks = tasks["ask_about_rest"]
    assert (asks.conf, asks.trigger_dag_id, asks.trigger_run_id) == ({"held": rest}, "decide.a.b", "incident__2")
    assert left({"held": every[:MOST_ASKED]}, every[:MOST_ASKED]) == []
    monkeypatch.setattr(decide_work, "opened_flow", None)  # a cluster may be away: nothing is read
    assert left({"held": rest}, rest) is None
    with pytest.raises(AirflowSkipException):
        tasks["ask_about_rest"].execute({"ti": Task(carry_out_held=[])})


def test_a_replay_is_of_the_offsets_that_its_form_names(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, partitions=1)
    produce(east, flow.topic, [Record(b"v")] * 20)
    form = {"what": "replay", "topics": [flow.topic], "partitions": [0], "start": 5, "end": 20}
    given = places(flow.flow.name, {"params": form})  # type: ignore[typeddict-item]
    for missing in ({"topics": None}, {"partitions": [0, 1]}, {"end": None}):
        with pytest.raises(NoOffsets, match="fill them in"):
            places(flow.flow.name, {"params": form | missing})  # type: ignore[typeddict-item]
    topics = sorted(prepare(flow.opened).topics)
    assert given.ranges(flow.opened, topics, Selection()) == [Range(flow.topic, 0, 5, 20)]
    with pytest.raises(BadRange, match="the source ends at 20"):
        OffsetRange(Range(flow.topic, 0, 5, 21)).ranges(flow.opened, topics, Selection())
    with pytest.raises(BadRange, match="empty"):
        OffsetRange(Range(flow.topic, 0, 5, 5)).ranges(flow.opened, topics, Selection())
    with pytest.raises(NotMirrored):
        OffsetRange(Range("strange", 0, 5, 6)).ranges(flow.opened, topics, Selection())


def test_a_replay_is_compared_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets that are only compared may be missing on the target."""
    compared: list[tuple[object, ...]] = []
    monkeypatch.setattr(audit_work, "compare_ranges", lambda *given, **more: compared.append((*given, more["strict"])))
    form = {"topics": ["orders"], "partitions": [0], "start": 5, "end": 20}
    context: Any = {"run_id": "manual__1", "dag_run": SimpleNamespace(run_type="manual")}
    for what in ("replay", "offsets"):
        CompareRange(task_id="compare", flow="a->b").work(context | {"params": form | {"what": what}}, Selection())
    offsets = OffsetRange(Range("orders", 0, 5, 20))
    assert compared == [
        (deployment(), "a->b", Selection(dry_run=dry), offsets, "manual__1", True) for dry in (False, True)
    ]


def test_a_run_of_a_dag_does_what_its_form_chooses() -> None:
    """The tasks of everything else are skipped, and no process finds that out."""
    flow = parse(REHEARSED, "mirror.properties").flow("a->b")
    audit, rehearse = audit_dag(flow), rehearsal_dag(flow)

    def done(dag: Any, what: str, run_type: str = "manual", at: str = "2026-11-22T00:00:00+00:00") -> set[str]:
        run = SimpleNamespace(run_type=run_type, run_after=timezone.parse(at))
        try:
            dag.task_dict["choose"].execute({"params": {"what": what}, "dag_run": run})
        except DownstreamTasksSkipped as skipped:
            return set(dag.task_ids) - set(skipped.tasks) - {"choose", "done"}  # type: ignore[arg-type]
        return set(dag.task_ids) - {"choose", "done"}

    writing = {"sync_topics", "replicate_window", "verify_window"}
    assert audit.params["what"] == "interval", "what the schedule and backfills do"
    assert done(audit, "interval") == done(audit, "replay") == {*writing, "compare"}
    assert done(audit, "offsets") == {"compare"} and done(audit, "report") == {"report"}
    every = {"failover", "move_shop", "move_stock"}
    assert rehearse.params["what"] == "everything"
    assert done(rehearse, "everything") == every and done(rehearse, "move_stock") == {"move_stock"}
    assert done(rehearse, "everything", "scheduled") == every
    assert done(rehearse, "everything", "scheduled", "2026-11-23T00:00:00+00:00") == {"failover"}
    alone = rehearsal_dag(parse(REHEARSED.split("a->b.move")[0], "mirror.properties").flow("a->b"))
    assert alone.task_ids == ["failover"], "nothing is to be chosen"


def test_backfills_are_told_of_only_where_airflow_makes_them() -> None:
    """Of a DAG without a schedule it makes none."""
    for more, has_backfills in (("", True), ("a->b.audit.schedule =\n", False)):
        flow = parse(CONFIGURATION + more, "mirror.properties").flow("a->b")
        told = f"{audit_dag(flow).doc_md} {replicate_dag(flow).doc_md}"
        assert ("airflow backfill create --dag-id audit.a.b" in told) is has_backfills


def test_an_audit_replicates_its_range_and_no_more(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = mirror(east, west, tmp_path, partitions=2)
    for partition in (0, 1):
        produce(east, flow.topic, [Record(b"v%d" % n) for n in range(20)], partition=partition)

    def run(prepared, _spark, order):  # type: ignore[no-untyped-def]
        mine = prepared.opened
        return run_window(mine.flow, mine.ledger, prepared.topics, in_this_process, replace(order, slots=lambda _: 1))

    monkeypatch.setattr(ranges, "run", run)
    monkeypatch.setattr(audit_work, "opened_flow", Given(flow.opened))
    asked = OffsetRange(Range(flow.topic, 0, 5, 12))
    only = SubmissionBounds(partial(audit_work.ranges_in, asked, Selection()), before=True)
    result = audit_work.replicate_ranges(
        deployment=deployment(),
        name=flow.flow.name,
        window="w",
        spark_url="sc://nowhere",
        selection=Selection(),
        only_up_to=only,
    )
    assert result.copied == 12 and not result.is_cut and not flow.opened.ledger.verified()
    assert {number: len(found) for number, found in read_all(west, flow.remote_topic).items()} == {0: 12, 1: 0}


def test_what_spark_submit_is_told_is_for_nobody_else(tmp_path: Path) -> None:
    found = opened(tmp_path)
    source = replace(found.flow.source, properties={**found.flow.source.properties, "sasl.jaas.config": "planted"})
    place = replace(deployment(), ledger="postgresql://u:planted-too@h/d")
    submission = Submission(place, "a->b", "w", "spark_test", Selection(), is_cluster=False)
    with submission._files(replace(found, flow=replace(found.flow, source=source))) as files:
        secrets = Path(files.paths[SECRETS])
        assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
        assert stat.S_IMODE(secrets.parent.stat().st_mode) == 0o700
        assert "planted" in secrets.read_text() and "planted-too" in secrets.read_text()
    assert not secrets.exists()


def test_a_driver_elsewhere_is_given_the_configuration_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A properties file is ISO-8859-1, and need not be UTF-8."""
    config, secrets = tmp_path / "latin.properties", list[dict[str, Any]]()
    config.write_bytes("clusters = a, b\r\n# für b\n".encode("iso-8859-1"))
    pods = SimpleNamespace(
        create_namespaced_secret=lambda _, body: secrets.append(body), delete_namespaced_secret=lambda *_: None
    )
    monkeypatch.setattr(kube_client, "get_kube_client", lambda: pods)
    place = replace(deployment(), config=config)
    for namespace in (None, "mirrors"):
        submission = Submission(place, "a->b", "w", "spark_test", Selection(), is_cluster=True, namespace=namespace)
        with submission._files(opened(tmp_path)) as files:
            if namespace is None:
                (sent,) = (each for each in files.options["files"].split(",") if each.endswith(files.paths[CONFIG]))
                assert Path(sent).read_bytes() == config.read_bytes()
    (secret,) = secrets
    assert b64decode(secret["data"][CONFIG]) == config.read_bytes()


def test_a_submitted_window_is_killed_where_its_driver_runs() -> None:
    killed: list[bool] = []
    submission = Submission(deployment(), "a->b", "w", "spark_test", Selection(), is_cluster=False)
    submission.kill()  # before anything was submitted
    submission._hook = SimpleNamespace(on_kill=lambda: killed.append(True))  # type: ignore[assignment]
    submission.kill()
    assert killed == [True]


def test_what_a_window_left_out_because_it_is_held_has_not_failed(caplog: pytest.LogCaptureFixture) -> None:
    held = PartitionHeld(cluster="a", topic="t", partition=0, offset=5, reason="late", by="gate", since_ms=0)
    nothing = dict.fromkeys(("copied", "control", "aborted", "holes", "lost", "bytes", "lag"), 0)
    offsets = dict.fromkeys(("source_start", "source_end", "target_start", "target_end"), 5)
    of = {"topic": "t", "remote_topic": "a.t", "verified": False, **offsets, **nothing}
    rows = (
        Row(partition=0, outcome=Outcome.FAILED, error=held, **of),  # type: ignore[arg-type]
        Row(partition=1, outcome=Outcome.DONE, error=None, **of),  # type: ignore[arg-type]
    )
    with caplog.at_level(logging.INFO):
        tell_result(WindowResult("a->b", "w", rows, partitions=2, seconds=1.0, phases={}, is_cut=False))
    assert "held" in caplog.text.splitlines()[-2] and "failed" not in caplog.text
    assert "Left out: t-0: held from offset 5 on by gate" in caplog.text


def test_how_far_a_window_has_come_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        tell_progress(CopyProgress(5_000, 19_590, 4_000, 2_000_000, 10.0))
    assert "5,000 of 19,590 offsets, 4,000 records, 2.0 MB, 400 records/s, about 29 s left" in caplog.text

"""DAG files: quick to parse, the same every time, and clear about a configuration that is wrong."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import airflow.sdk
import pytest
from airflow.sdk import AssetOrTimeSchedule, MultipleCronTriggerTimetable

from airmirror.airflow import dags
from airmirror.config import parse as configuration
from airmirror.on_airflow.dags.maintenance import maintenance_dag
from airmirror.on_airflow.dags.operate import RUNBOOKS
from airmirror.on_airflow.dags.schedules import CONTINUOUS, BadSchedule, fires, schedule, timetable, union
from airmirror_local.stack import DAGS
from support import ROOT

FLOWS = """
clusters = a, b
a.bootstrap.servers = one:9092
b.bootstrap.servers = two:9092
a->b.enabled = true
b->a.enabled = true
a->b.window.schedule = */5 * * * *
b->a.window.schedule = @continuous
a->b.retention.days = 30
a->b.failover.rehearsal.schedule = @weekly
a->b.move.shop.topics = orders
"""
GOOD = f"""{FLOWS}
compare.nightly.source = a
compare.nightly.target = b
compare.nightly.schedule = @daily
compare.now.source = b
compare.now.target = a
"""
POLICY = "ByError" if hasattr(airflow.sdk, "RetryPolicy") else "NoneType"  # Airflow 3.2 has none
OF_A_FLOW = ("replicate", "decide", "audit", "operate", "rehearse")
KINDS = {*OF_A_FLOW, "compare", "heartbeats", "maintenance"}
TRIGGERED = ("audit", "decide", "operate", "rehearse")  # whose runs do not wait for each other
PARSE = """
import json, os, sys, time
from airflow.sdk import DAG
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.dag_processing.dagbag import DagBag

def parsed(configuration):
    os.environ["AIRMIRROR_CONFIG"] = configuration
    begun = time.process_time()
    bag = DagBag(sys.argv[1])
    seconds = time.process_time() - begun
    from airflow.serialization.serialized_objects import DagSerialization
    not_here = ("pyspark", "great_expectations", "confluent_kafka", "kafka", "pandas", "numba", "airmirror.on_airflow.tasks")
    heavy = [name for name in not_here if name in sys.modules]
    dags = {name: DagSerialization.to_dict(dag) for name, dag in sorted(bag.dags.items())}
    contracts = {
        name: {
            "tags": sorted(dag.tags), "doc": dag.doc_md, "catchup": dag.catchup, "max_active_runs": dag.max_active_runs,
            "description": dag.description, "is_paused": dag.is_paused_upon_creation,
            "scheduled": type(dag.timetable).__name__ != "NullTimetable",
            "tasks": [
                {
                    "type": task.task_type, "owner": task.owner, "pool": task.pool, "retries": task.retries,
                    "delay": task.retry_delay.total_seconds(), "policy": type(getattr(task, "retry_policy", None)).__name__,
                    "users": getattr(task, "assigned_users", None), "id": task.task_id, "at_once": task.max_active_tis_per_dag,
                    "longest": task.execution_timeout and task.execution_timeout.total_seconds(),
                }
                for task in dag.tasks
            ],
        }
        for name, dag in bag.dags.items()
    }
    return [seconds, heavy, bag.import_errors, dags, contracts]

print("ANSWER" + json.dumps([parsed(file) for file in sys.argv[2:]], sort_keys=True, default=str))
"""
# Every task is a process of its own: a run is six imports one after the other.
OF_A_TASK = """
import sys, airmirror.web.plugin, airmirror.on_airflow.tasks.window
heavy = {"airmirror.web.app", "fastapi", "numba", "great_expectations", "pandas", "prometheus_client", "pyspark"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
"""
Parsed = tuple[float, list[str], dict[str, str], dict[str, Any], dict[str, Any]]


def parse(directory: Path, *texts: str, seed: str = "1", before: str = "") -> list[Parsed]:
    """What one process finds in the DAGs folder with each configuration in turn; it runs the code ``before``."""
    files = []
    for number, text in enumerate(texts):
        files.append(directory / f"{number}.properties")
        files[-1].write_text(text)
    environment = os.environ | {
        "AIRFLOW_HOME": str(directory),
        "PYTHONHASHSEED": seed,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    command = [sys.executable, "-c", before + PARSE, str(ROOT / "dags"), *map(str, files)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    return [tuple(each) for each in json.loads(done.stdout.split("ANSWER", 1)[1])]


@pytest.mark.long
def test_dags_parse_quickly(tmp_path: Path) -> None:
    ((seconds, *_),) = parse(tmp_path, GOOD)
    assert seconds < 1


def test_dags_parse_equally_and_load_nothing_heavy(home: Path, parsed: dict[str, Parsed]) -> None:
    """Nor does what every task loads."""
    _, heavy, errors, found, _ = parsed[GOOD]  # the first one of its process
    assert heavy == [] and errors == {}
    expected = [f"{kind}.{flow}" for kind in OF_A_FLOW for flow in ("a.b", "b.a")] + ["heartbeats.a", "heartbeats.b"]
    expected += ["compare.nightly", "compare.now"]
    assert list(found) == sorted([*expected, "maintenance"])
    ((*_, again, _),) = parse(home, GOOD, seed="2", before=OF_A_TASK)
    assert found == again


def test_a_task_gets_its_own_dag_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mirror.properties").write_text(GOOD)
    monkeypatch.setenv("AIRMIRROR_CONFIG", str(tmp_path / "mirror.properties"))
    every = dags()
    assert {name.split(".")[0] for name in every} == KINDS
    for name in (*every, "replicate.a.c"):
        monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", name)  # as Airflow does it (get_parsing_context)
        found = dags()
        assert list(found) == [name] * (name in every)
        assert all(dag.task_ids == every[name].task_ids for dag in found.values())


MORE = """
a->b.sync.group.offsets.enabled = true
a->b.window.max.ms = 60000
a->b.decide.users = ann, bob
b->a.dags = audit
"""
WRONG = {
    "compare.nightly.sample = some\na->b.enabld = true": "a->b.enabled",
    "a->b.window.schedule = 1 minut": "write an interval",
    "a->b.topics = [": "a->b.topics",
    "a->b.window.max.ms = 9223372036854775807": "must be at most",
    "a->b.on.failure.notifier = no.such.Notifier": "no.such.Notifier",
    "a->b.move.rehearsal.schedule = 1 day": "write both as cron lines",
    "a->b.dags = audit, rehears": "must be some of audit, operate, rehearse",
}
NOTHING = ("nonsense = 1", FLOWS + "topics = [\nemit.heartbeats.enabled = false\n")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Airflow's own, whose place is in every DAG."""
    return tmp_path_factory.mktemp("dags")


@pytest.fixture(scope="module")
def parsed(home: Path) -> dict[str, Parsed]:
    """What is found with each configuration, by what it adds; in one process, because loading Airflow takes seconds."""
    texts = (
        {GOOD: GOOD, MORE: GOOD + MORE}
        | {line: f"{GOOD}\n{line}\n" for line in WRONG}
        | {text: text for text in NOTHING}
    )
    return dict(zip(texts, parse(home, *texts.values()), strict=True))


@pytest.fixture(scope="module")
def contracts(parsed: dict[str, Parsed]) -> dict[str, Any]:
    found = parsed[MORE][4]
    assert found
    return found


def test_audits_and_replays_tell_nobody_of_positions(contracts: dict[str, Any]) -> None:
    """What they replicate again lies below what was told: offset syncs and checkpoints are the replicating run's."""
    told = {"EmitOffsetSyncs", "EmitCheckpoints", "SyncGroupOffsets"}
    types = {name: {task["type"] for task in contract["tasks"]} for name, contract in contracts.items()}
    assert told <= types["replicate.a.b"]
    assert not told & types["audit.a.b"]


def test_what_people_rely_on_in_every_dag(contracts: dict[str, Any]) -> None:
    assert {name.split(".")[0] for name in contracts} == KINDS
    for name, dag in contracts.items():
        assert not dag["catchup"] and dag["max_active_runs"] == (1000 if name.startswith(TRIGGERED) else 1)
        assert dag["doc"] and dag["tags"]
        # The list of DAGs says whether to switch each on; one that waits for nobody's clock is on from the start.
        assert re.match(r"Switch this on|Leave it on", dag["description"]) and len(dag["description"]) <= 110
        assert (dag["is_paused"] is False) == (not dag["scheduled"]), name
        for task in dag["tasks"]:
            assert task["owner"] == "airmirror"
            assert task["pool"] == "default_pool"  # a task whose pool does not exist is never scheduled
        if name == "maintenance":
            assert [task["type"] for task in dag["tasks"]] == ["Prune"]
            continue
        if name.startswith("compare."):
            assert [(task["type"], task["retries"], task["policy"]) for task in dag["tasks"]] == [
                ("CompareClusters", 3, POLICY)
            ]
            assert dag["scheduled"] is (name == "compare.nightly")
            continue
        *_, target = name.split(".")
        assert f"target:{target}" in dag["tags"] and target in dag["doc"]
        if name.startswith("heartbeats."):
            continue
        _, source, target = name.split(".")
        assert {f"flow:{source}->{target}", f"source:{source}"} <= set(dag["tags"])
        assert f"{source}->{target}" in dag["doc"]
        for task in dag["tasks"]:
            if task["type"] not in ("AskToDecide", "EmptyOperator", "Idle", "NextWindow"):
                assert (task["retries"], task["delay"], task["policy"]) == (3, 15.0, POLICY), task


def test_a_flow_has_the_dags_that_the_configuration_wants(contracts: dict[str, Any]) -> None:
    for flow, kinds in (("a.b", OF_A_FLOW), ("b.a", ("replicate", "decide", "audit"))):
        assert {name for name in contracts if name.endswith(f".{flow}")} == {f"{kind}.{flow}" for kind in kinds}


def test_windows_of_a_flow_never_run_at_once_nor_for_ever(contracts: dict[str, Any]) -> None:
    writing = {"replicate_window", "verify_window", "emit_offset_syncs", "emit_checkpoints", "sync_group_offsets"}
    for name in ("replicate.a.b", "audit.a.b"):
        tasks = {task["id"]: task for task in contracts[name]["tasks"]}
        # max_active_runs does not bind the runs of a backfill.
        one_at_a_time = {task for task, given in tasks.items() if given["at_once"] == 1}
        assert writing & tasks.keys() <= one_at_a_time and len(one_at_a_time) >= 3, name
        assert tasks["replicate_window"]["longest"] == (540 if name == "replicate.a.b" else 6 * 3600)
    (prune,) = contracts["maintenance"]["tasks"]
    assert (prune["id"], prune["at_once"]) == ("prune.a.b", 1)


def test_no_two_flows_have_one_task() -> None:
    """``a_b->c`` and ``a->b_c`` are different DAGs, which Airflow tells apart by dots."""
    aliases = ("a", "a_b", "b_c", "c")
    servers = "".join(f"{alias}.bootstrap.servers = {alias}:1\n" for alias in aliases)
    text = f"clusters = {', '.join(aliases)}\n{servers}a_b->c.enabled = true\na->b_c.enabled = true\nretention.days = 1"
    flows = configuration(text, "f").enabled
    assert maintenance_dag(flows).task_ids == ["prune.a_b.c", "prune.a.b_c"]


def test_who_may_decide_can_be_named(contracts: dict[str, Any]) -> None:
    asking = {"decide": ["ask"]}
    asking["operate"] = [
        "failover.approve_drain",
        "failover.approve_undo",
        "failback.approve_return",
        "failback.approve_drain",
        "takeover.approve_take_over",
        "handback.approve_write",
    ]
    asking["operate"] += [
        f"migration.approve_{step}" for step in ("cut_over_consumers", "cut_over_producers", "finish", "undo")
    ]
    named = [{"id": "ann", "name": "ann"}, {"id": "bob", "name": "bob"}]
    for kind, names in asking.items():
        users = {task["id"]: task["users"] for task in contracts[f"{kind}.a.b"]["tasks"]}
        assert {name: users[name] for name in names} == dict.fromkeys(names, named), kind
    (ask,) = (task for task in contracts["decide.b.a"]["tasks"] if task["id"] == "ask")
    assert ask["users"] is None  # all who may answer


@pytest.mark.parametrize(("line", "said"), WRONG.items())
def test_what_is_wrong_with_one_flow_leaves_the_others_their_dags(
    line: str, said: str, parsed: dict[str, Parsed]
) -> None:
    _, _, errors, found, _ = parsed[line]
    assert len(errors) == 1, errors
    ((file, message),) = errors.items()
    assert "configuration.py" in file and said in message and "line " in message
    assert {"replicate.b.a", "audit.b.a", "decide.b.a"} <= found.keys()
    assert ("rehearse.a.b" if "rehearsal" in line else "replicate.a.b") not in found
    assert "compare.now" in found and ("compare.nightly" in found) is ("compare.nightly" not in message)
    assert ("compare.nightly" in line) is ("compare.nightly.sample: must be a share" in message)


@pytest.mark.parametrize("text", NOTHING)
def test_a_file_without_a_flow_that_can_run_is_one_clear_import_error(text: str, parsed: dict[str, Parsed]) -> None:
    _, _, errors, found, _ = parsed[text]
    assert len(errors) == 1 and found == {}
    assert all("airmirror_dags.py" in file for file in errors)


@pytest.mark.parametrize(
    ("text", "seconds"), [("1 minute", 60), ("30 s", 30), ("5min", 300), ("2 hours", 7200), ("1 d", 86_400)]
)
def test_intervals(text: str, seconds: int) -> None:
    assert timetable("a->b", text).delta == timedelta(seconds=seconds)  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["*/5 * * * *", "@hourly", "0 3 * * 1-5"])
def test_cron_lines(text: str) -> None:
    assert timetable("a->b", text).expression  # type: ignore[union-attr]


def test_a_dag_has_the_union_of_its_schedules() -> None:
    both = {"failover.rehearsal.schedule": "@daily", "move.rehearsal.schedule": "30 4 * * 0"}
    assert isinstance(union("a->b", both), MultipleCronTriggerTimetable)
    assert union("a->b", dict.fromkeys(both, "2 days")).delta == timedelta(days=2)  # type: ignore[union-attr]
    assert union("a->b", {}) is None
    for at, fired in (
        (datetime(2026, 11, 22, 0, 0, tzinfo=UTC), [True, False]),
        (datetime(2026, 11, 22, 4, 30, tzinfo=UTC), [False, True]),
    ):
        assert [fires(each, at) for each in both.values()] == fired


@pytest.mark.parametrize("text", ["soon", "0 s", "61 * * * *", "@never", ""])
def test_bad_schedules(text: str) -> None:
    with pytest.raises(BadSchedule, match="a->b"):
        timetable("a->b", text)


def test_continuous_is_for_windows_only() -> None:
    assert schedule("a->b", " @continuous ") == CONTINUOUS
    with pytest.raises(BadSchedule, match=r"audit\.schedule"):
        timetable("a->b", "@continuous", "audit.schedule")


def test_a_window_starts_when_the_source_has_grown_too(tmp_path: Path) -> None:
    grown = schedule("a->b", "1 minute", 500)
    assert isinstance(grown, AssetOrTimeSchedule)
    with pytest.raises(BadSchedule, match=r"window\.trigger\.records = 500.*one or the other"):
        schedule("a->b", "@continuous", 500)


def test_airflow_finds_the_plugin_by_its_entry_point() -> None:
    from airflow.plugins_manager import get_plugin_info

    (found,) = (plugin for plugin in get_plugin_info() if plugin["name"] == "airmirror")
    assert "airmirror==" in str(found["source"]) and "/airmirror" in str(found["fastapi_apps"])


def test_the_plugins_folder_serves_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Airflow executes every file in it as a top-level module, which can shadow the standard library.
    (file,) = (ROOT / "plugins").rglob("*.py")
    assert "AirmirrorPlugin" not in runpy.run_path(str(file))  # its entry point is there: twice is an error in Airflow
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: ())
    assert runpy.run_path(str(file))["AirmirrorPlugin"].name == "airmirror"


def test_the_stack_s_dags_folder_has_the_two_lines_that_are_documented() -> None:
    assert DAGS in (ROOT / "dags" / "airmirror_dags.py").read_text()
    for document in ("README.md", "docs/managed-airflow.md"):
        assert DAGS in (ROOT / document).read_text(), document


def test_each_kind_of_dag_has_its_line_and_a_permission_in_the_page() -> None:
    """Airflow gives rights by DAG; and each runbook names its users by a key."""
    page = (ROOT / "docs" / "airflow.md").read_text()
    parts = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    for part, row in (("The DAGs", r"^\| `"), ("Permissions", r"`")):
        named = re.findall(rf"{row}([a-z]+)(?:\.(?:<[a-z]+>|…)(?:\.<target>)?)?`", parts[part], re.MULTILINE)
        assert not KINDS.difference(named), part
    users = re.findall(r"`([a-z]+)\.users`", parts["Permissions"])
    assert set(users) == {"decide", *RUNBOOKS}

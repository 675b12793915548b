"""The console without Airflow: a ledger with something to show, and the app with Airflow's log-in replaced."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import pytest
import uvicorn
from fastapi import Body, Depends, FastAPI, HTTPException
from fastapi.testclient import TestClient

from airmirror.errors import AirmirrorError
from airmirror.evidence.single import LogBounds, Single
from airmirror.flows.measure import COMPLETED, LAST_SECONDS, MEASURED, SECONDS, VERIFIED, WINDOWS
from airmirror.ledger import GroupLag, GroupOffset, Ledger
from airmirror.ledger.approvals import PendingQuestion, note_question
from airmirror.ledger.metrics import Standing
from airmirror.ledger.samples import FlowSample
from airmirror.ledger.tables import samples
from airmirror.on_airflow.question import OPTIONS
from airmirror.partitions import Entry, TopicPartition
from airmirror.web import app, security
from airmirror.web.console import records
from airmirror.wire.mappings import Action, Decision, Hold, MappingRecord
from airmirror.wire.mirrormaker import source_offset_key, source_offset_value
from airmirror_local.ports import LOOPBACK, free_port
from ledger.test_ledger import entries, load
from support.ledgers import ORDERS, PROGRESS, TOPIC_ID, mapping, verified

HOSTILE = "<img src=x onerror=document.title='taken'>"
RUN = "scheduled__2026-11-22T14:00:00+00:00"
NAME, DAG = "east->west", "replicate.east.west"
FLOW = f"/console/api/flows/{DAG}"


@dataclass
class Viewer:
    """The caller as Airflow knows them: the DAGs whose runs they may read, and whether they have logged in."""

    dags: set[str] = field(default_factory=set)
    logged_in: bool = True
    paused: set[str] = field(default_factory=set)
    sees_connections: bool = True
    red: dict[str, str] = field(default_factory=dict)


CONFIGURATION = f"""
clusters = east, west
east.bootstrap.servers = {LOOPBACK}:1
west.bootstrap.servers = {LOOPBACK}:1
{NAME}.enabled = true
{NAME}.topics = .*
{NAME}.console.records.enabled = true
{NAME}.console.records.mask = keeper
"""


def pretend(directory: Path, patch: pytest.MonkeyPatch) -> Viewer:
    """Put a viewer's permissions in the place of Airflow's, and the deployment's files into a directory."""
    path, found = directory / "mirror.properties", Viewer({DAG})
    path.write_text(CONFIGURATION)
    patch.setenv("AIRMIRROR_CONFIG", str(path))
    patch.setenv("AIRMIRROR_LEDGER", f"sqlite:///{directory / 'ledger.db'}")

    def user() -> str:
        if not found.logged_in:
            raise HTTPException(401, "Invalid authentication credentials")
        return "ann"

    def may_see_dag(dag_id: str, _user: str = Depends(user)) -> None:
        if dag_id not in found.dags:
            raise HTTPException(403, "Forbidden")

    def readable(_user: Any, dag_ids: Any) -> dict[str, bool]:
        return {dag_id: dag_id in found.paused for dag_id in dag_ids if dag_id in found.dags}

    patch.setattr(app, "may_see_plugins", lambda: Depends(user))
    patch.setattr(security, "may_see_plugins", lambda: Depends(user))
    patch.setattr(security, "may_see_dag", lambda: Depends(may_see_dag))
    patch.setattr(security, "logged_in", lambda: Depends(user))
    patch.setattr(security, "readable", readable)
    patch.setattr(security, "red", lambda dag_ids: {each: found.red[each] for each in dag_ids if each in found.red})
    patch.setattr(security, "may_read_records", lambda _user: found.sees_connections)
    return found


def pretend_records(patch: pytest.MonkeyPatch) -> None:
    """Put made-up records in the place of both clusters': each copy has another wind."""

    def single(alias: str, _key: TopicPartition, offset: int) -> Single:
        told = {"station": "Alki Point", "wind": 4.7 if alias == "east" else 4.1, "keeper": "Ann"}
        headers = ((b"origin", b"buoy-7"), (b"keeper", b"Ann"), (HOSTILE.encode(), b"m/s"))
        return Single(offset, 1_795_356_000_000, b'{"station": 7}', json.dumps(told).encode(), headers, False)

    patch.setattr(records, "_routes", lambda cluster: nullcontext(cluster.alias))
    patch.setattr(records, "bounds", lambda *_: LogBounds(0, 1_000))
    patch.setattr(records, "single", single)


def asked(client: TestClient, path: str) -> Any:
    """The JSON that a route answers."""
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


class Stopped(AirmirrorError):
    """An error of a window, as long as one of many partitions; its way out comes last."""

    def __str__(self) -> str:
        return f"flow 'east->west': {HOSTILE} stopped: {'orders-1, ' * 60}`airmirror status` says more"


def fill(ledger: Ledger, now: int) -> None:
    """A flow with a lag, a hold of the gate and one of a person, a window that failed, groups and an hour of samples."""
    own, minute = ledger.flow(NAME), 60_000
    records: list[Any] = [
        *(_at(mapping(n * 100, n * 100 + 100, window=f"{RUN}#1-{n:04x}"), now - (10 - n) * minute) for n in range(10)),
        _at(mapping(0, 50, partition=1, window=f"{RUN}#1-0009"), now - minute),
        _at(mapping(0, 5, topic="payments", window=f"{RUN}#1-0009", topic_id=UUID(int=3)), now - minute),
        replace(verified(999), time_ms=now - minute),
        replace(verified(4, topic="payments", topic_id=UUID(int=3)), time_ms=now - minute),
        Hold(
            topic="orders",
            partition=1,
            offset=0,
            reason=f"records differ: {HOSTILE}",
            window=f"{RUN}#1-0009",
            by="gate",
            time_ms=now - minute,
        ),
        Decision(
            topic="payments", partition=0, time_ms=now - 30_000, action=Action.HOLD, offset=5, reason=HOSTILE, by="ann"
        ),
    ]
    load(own, entries(*records))
    progress = Entry(0, 0, 0, source_offset_key("east", "orders", 1), source_offset_value(49))
    own.load(PROGRESS, TOPIC_ID, [progress], {0: 1})
    own.note_standings(
        [
            Standing("orders", 0, "east.orders", 1000, 1400),
            Standing("orders", 1, "east.orders", 50, 50),
            Standing("payments", 0, "east.payments", 5, 5),
        ]
    )
    own.count_verified()
    own.note(
        {(WINDOWS, "replicated"): 10, (WINDOWS, "incomplete"): 1, (SECONDS, "copy"): 40.5, (SECONDS, "gate"): 3.25},
        {
            (MEASURED, ""): now / 1000,
            (LAST_SECONDS, ""): 3,
            (COMPLETED, ""): now / 1000 - 60,
            (VERIFIED, ""): now / 1000 - 90,
        },
    )
    own.note_window(f"{RUN}#1-000a", {TopicPartition("orders", 1): Stopped()}, lambda key: True)
    group = GroupLag(
        group=HOSTILE, topic="orders", partition=0, cluster="east", position=900, lag=500, lag_ms=90_000, time_ms=now
    )
    own.note_group_lags(
        [replace(group, again=4, again_ms=2_500), replace(group, group="billing", partition=1, lag_ms=None)]
    )
    moved = GroupOffset(
        group="billing",
        topic="orders",
        partition=1,
        remote_topic="east.orders",
        position=40,
        upstream=40,
        downstream=40,
        exact=True,
        again=0,
        on_target=10,
        reason="it has members on west",
        time_ms=now,
    )
    own.note_group_offsets([moved])
    add_samples(ledger, NAME, [sample(now - (60 - n) * minute, n) for n in range(60)])


def hold_many(ledger: Ledger, partitions: int) -> None:
    """The gate holds this many partitions of a topic."""
    held = [Hold("many", n, offset=0, reason="", window="w", by="gate", time_ms=1) for n in range(partitions)]
    load(ledger.flow(NAME), entries(*held))


def decide(ledger: Ledger, now: int) -> None:
    """Ann lets pass what the gate holds of ``fill``, and the gate judges so; its run is over."""
    own = ledger.flow(NAME)
    hold = own.holds()["orders", 1]
    passed = replace(verified(49, partition=1), time_ms=now)
    answer = Decision(
        topic="orders", partition=1, time_ms=now, action=Action.LET_PASS, offset=49, reason="the archive", by="ann"
    )
    load(own, entries(answer, passed, (hold, None), start=100))
    own.count_verified()


def add_samples(ledger: Ledger, flow: str, rows: list[FlowSample]) -> None:
    with ledger.engine.begin() as connection:
        connection.execute(samples.insert(), [{"flow": flow, **vars(row)} for row in rows])


def sample(time_ms: int, number: int) -> FlowSample:
    return FlowSample(
        time_ms=time_ms,
        records=number * 6_000,
        bytes=number * 600_000,
        lag_records=(number * 37) % 400,
        lag_ms=(number * 613) % 9_000,
        latency_ms=400 + (number * 71) % 300,
        latency_most_ms=900 + (number * 131) % 900,
        verified_ms=time_ms - 4_000 - (number % 5) * 1_000,
    )


def _at(record: MappingRecord, time_ms: int) -> MappingRecord:
    return replace(
        record, time_ms=time_ms, max_timestamp=time_ms - 700, min_timestamp=time_ms - 1_500, read_ms=time_ms - 200
    )


def fill_many(ledger: Ledger, now: int, partitions: int, groups: int) -> None:
    """A flow of many partitions, some with a lag, and many groups."""
    own, per_topic = ledger.flow(NAME), 100
    places = [(f"topic-{number // per_topic:04d}", number % per_topic) for number in range(partitions)]
    load(own, entries(*(_at(mapping(0, 10, topic=topic, partition=n), now - 5_000) for topic, n in places)))
    load(
        own,
        entries(
            *(
                replace(verified(9, topic=topic, partition=n), source_topic_id=ORDERS, time_ms=now)
                for topic, n in places
            ),
            start=partitions,
        ),
    )
    own.note_standings([Standing(topic, n, f"east.{topic}", 10, 10 + 7 * (n % 3 == 0)) for topic, n in places])
    own.count_verified()
    own.note(
        {(WINDOWS, "replicated"): 1},
        {(MEASURED, ""): now / 1000, (COMPLETED, ""): now / 1000, (VERIFIED, ""): now / 1000},
    )
    lag = GroupLag(
        group="", topic="topic-0000", partition=0, cluster="east", position=4, lag=6, lag_ms=500, time_ms=now
    )
    own.note_group_lags([replace(lag, group=f"group-{number:04d}") for number in range(groups)])


@dataclass
class Questions:
    """Airflow's own routes for questions, as its API has them: the runs that ask, and what was answered."""

    asked: list[str] = field(default_factory=list)
    answers: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    refusal: str = ""

    def app(self) -> FastAPI:
        api, of_run = FastAPI(), "/dags/{dag_id}/dagRuns/{run}/taskInstances/ask"
        api.get("/dags/{dag_id}/dagRuns/~/hitlDetails")(self.open)
        api.patch(f"{of_run}/-1/hitlDetails")(self.answer)
        api.post("/dags/{dag_id}/dagRuns")(self.start)
        return api

    def ask(self, ledger: Ledger, run: str, held: list[list[Any]]) -> None:
        """A run of ``decide.east.west`` asks about partitions, and notes so."""
        about = json.dumps([{}, held])
        now = int(time.time() * 1000)
        note_question(ledger.engine, PendingQuestion("east->west", f"decide.east.west {run}", "ask", run, about, now))
        self.asked.append(run)

    def open(self) -> dict[str, Any]:
        answered = {run for run, _ in self.answers}
        return {
            "hitl_details": [
                {
                    "options": [option.name for option in OPTIONS],
                    "created_at": "2026-11-22T14:00:00Z",
                    "task_instance": {"dag_run_id": run, "task_id": "ask"},
                }
                for run in self.asked
                if run not in answered
            ]
        }

    def answer(self, run: str, body: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        if self.refusal:
            raise HTTPException(403, self.refusal)
        self.answers.append((run, body))
        return body

    def start(self, body: Annotated[dict[str, Any], Body()]) -> dict[str, str]:
        self.runs.append(body)
        return {"dag_run_id": "manual__1"}


@contextmanager
def served(console: FastAPI, base_path: str = "", questions: Questions | None = None) -> Iterator[str]:
    """The app as Airflow's API server has it, mounted at /airmirror, without Airflow; the address before that."""
    whole = FastAPI()
    whole.mount(f"{base_path}/airmirror", console)
    whole.mount(f"{base_path}/api/v2", (questions or Questions()).app())
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(whole, host=LOOPBACK, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        yield f"http://{LOOPBACK}:{port}{base_path}"
    finally:
        server.should_exit = True
        thread.join()

"""The console's routes: its files, the frame's document, and the numbers as JSON.

An answer has an ETag and no clock in it, so that a page that asks again gets 304 until a number has changed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from airmirror.config import ConfigurationError, Flow
from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, as_decided
from airmirror.ledger import Ledger
from airmirror.ledger.database import reading
from airmirror.ledger.showing import partition_row
from airmirror.on_airflow.connections import BadConnection, with_connections
from airmirror.on_airflow.deployment import deployment
from airmirror.partitions import TopicPartition
from airmirror.web import security
from airmirror.web.console import assets
from airmirror.web.console.details import groups_page, partition_page, topics_page
from airmirror.web.console.differences import differences_page
from airmirror.web.console.flow import flow_page
from airmirror.web.console.opened import Flows, NoLedger, flows_of, opened
from airmirror.web.console.overview import Shown, overview
from airmirror.web.console.records import TooManyReaders, record_page, turn, who
from airmirror.web.console.waiting import waiting

log = logging.getLogger(__name__)

NOSNIFF = {"X-Content-Type-Options": "nosniff"}
HEADERS = {"Cache-Control": "private, no-cache"} | NOSNIFF
NO_STORE = {"Cache-Control": "no-store"} | NOSNIFF  # of what the clusters themselves were asked
MOST_OFFSET = 2**63 - 1
MOST_MS = 2**53
MOST_TOLD = 1_000  # characters of an error of a cluster


class _Span(BaseModel):
    """What is plotted: the last ``span``, or from ``since`` to ``until`` in epoch milliseconds; nothing said: six hours."""

    span: int = Field(6 * 3_600_000, ge=60_000, le=MOST_MS)
    since: int | None = Field(None, ge=0, le=MOST_MS)
    until: int | None = Field(None, ge=0, le=MOST_MS)

    def of(self, now: int) -> tuple[int, int]:
        until = now + 1 if self.until is None else self.until
        return (now - self.span if self.since is None else self.since), until


Span = Annotated[_Span, Query()]


def console_router() -> APIRouter:
    """All routes of the console, each guarded."""
    router = APIRouter(prefix="/console")
    router.include_router(_files())
    router.include_router(_numbers())
    return router


def _files() -> APIRouter:
    # As Airflow's list of plugins: who may see the entry can load what it names, or would get a page "404".
    router = APIRouter(dependencies=[security.may_see_plugins()])

    @router.get("/static/{file}")
    def static(file: str) -> Response:
        return assets.static(file)

    @router.get("/frame")
    @router.get("/frame/{page:path}")
    def frame(request: Request) -> Response:
        return assets.frame(str(request.scope.get("root_path", "")))

    return router


def _numbers() -> APIRouter:
    router = APIRouter(prefix="/api", dependencies=[security.may_see_plugins()])
    logged_in = security.logged_in()

    @router.get("/overview")
    def flows(request: Request, user: Any = logged_in) -> Response:
        known = _flows()
        shown = _with_runs(_shown(known, security.readable(user, known.by_dag)))
        return _answer(
            request,
            lambda ledger, now: {
                "flows": overview(ledger, shown, now),
                "hidden": len(known.by_dag) - len(shown),
                "broken": len(known.broken),
            },
        )

    @router.get("/decisions")
    def decisions(request: Request, user: Any = logged_in) -> Response:
        known = _flows()
        shown = _with_runs(_shown(known, security.readable(user, known.by_dag)))
        return _answer(request, lambda ledger, now: waiting(ledger, shown.values()))

    router.include_router(_of_a_flow())
    return router


def _of_a_flow() -> APIRouter:
    router = APIRouter(prefix="/flows/{dag_id}", dependencies=[security.may_see_dag()])
    logged_in = security.logged_in()

    @router.get("")
    def flow(dag_id: str, request: Request, span: Span, user: Any = logged_in) -> Response:
        one = _one(dag_id, user)
        (shown,) = _with_runs({one.dag_id: one}).values()

        def made(ledger: Ledger, now: int) -> dict[str, Any]:
            return flow_page(ledger, shown, span=span.of(now), now=now) | _named(shown)

        return _answer(request, made)

    @router.get("/partition")
    def partition(
        dag_id: str,
        request: Request,
        topic: Annotated[str, Query(max_length=249)],
        partition: Annotated[int, Query(ge=0, lt=2**31)],
        before: Annotated[int | None, Query(ge=0, le=MOST_OFFSET)] = None,
        user: Any = logged_in,
    ) -> Response:
        shown = _one(dag_id, user)

        def story(ledger: Ledger, now: int) -> dict[str, Any]:
            found = partition_page(ledger, shown.flow.name, (topic, partition), before)
            if found is None:
                raise HTTPException(404, f"the ledger knows nothing of partition {partition} of that topic", HEADERS)
            return found | _named(shown) | {"records": shown.flow.settings.console_records_enabled}

        return _answer(request, story)

    @router.get("/record")
    def record(
        dag_id: str,
        topic: Annotated[str, Query(max_length=249)],
        partition: Annotated[int, Query(ge=0, lt=2**31)],
        offset: Annotated[int | None, Query(ge=0, lt=MOST_OFFSET)] = None,
        time_ms: Annotated[int, Query(ge=0, le=MOST_MS)] = 0,
        user: Any = logged_in,
    ) -> Response:
        shown = _one(dag_id, user)
        found = _record(shown.flow, TopicPartition(topic, partition), offset, time_ms, user)
        return JSONResponse(found | _named(shown), headers=NO_STORE)

    @router.get("/topics")
    def topics(dag_id: str, request: Request, user: Any = logged_in) -> Response:
        shown = _one(dag_id, user)
        return _answer(request, lambda ledger, now: {"topics": topics_page(ledger, shown.flow.name)} | _named(shown))

    @router.get("/differences")
    def differences(dag_id: str, user: Any = logged_in) -> Response:
        shown = _one(dag_id, user)
        return JSONResponse(_differences(shown.flow, user) | _named(shown), headers=NO_STORE)

    @router.get("/groups")
    def groups(dag_id: str, request: Request, user: Any = logged_in) -> Response:
        shown = _one(dag_id, user)
        return _answer(request, lambda ledger, now: groups_page(ledger, shown.flow.name) | _named(shown))

    return router


def _flows() -> Flows:
    try:
        return flows_of(deployment().config)
    except (ConfigurationError, OSError) as error:
        raise HTTPException(
            503, f"the configuration can't be read: {type(error).__name__}; see `airmirror config`", HEADERS
        ) from error


def _shown(known: Flows, readable: Mapping[str, bool]) -> dict[str, Shown]:
    return {dag_id: Shown(known.by_dag[dag_id], dag_id, is_paused) for dag_id, is_paused in readable.items()}


def _with_runs(shown: Mapping[str, Shown]) -> dict[str, Shown]:
    """The same, with their last finished runs that failed: Airflow's database is asked once more."""
    red = security.red(shown)
    return {dag_id: replace(each, red_run=red.get(dag_id, "")) for dag_id, each in shown.items()}


def _one(dag_id: str, user: Any) -> Shown:
    """The flow to which a DAG belongs. 404 for a DAG that is not ours, is not there, or whose flow the user may not see."""
    known = _flows()
    owner = known.owners.get(dag_id, "")
    readable = security.readable(user, [owner]) if owner else {}
    if owner not in readable:
        raise HTTPException(404, "no DAG of a flow, or none that you may see", HEADERS)
    return _shown(known, readable)[owner]


def _record(flow: Flow, key: TopicPartition, offset: int | None, time_ms: int, user: Any) -> dict[str, Any]:
    """A record and its copy, for who may see it; each look is in the log. 404, 403, 429."""
    if not flow.settings.console_records_enabled:
        raise HTTPException(404, "records are not shown: console.records.enabled is false for this flow", HEADERS)
    with _at_clusters("records are shown", "records are looked at", user) as ledger:
        with reading(ledger.engine) as connection:
            if partition_row(connection, flow.name, (key.topic, key.partition)) is None:
                raise HTTPException(404, "the flow does not replicate such a partition", HEADERS)
        log.info("%s looks at a record of %s at %s", who(user), key, offset if offset is not None else time_ms)
        return record_page(ledger, with_connections(_flows().configuration, flow), key, offset, time_ms)


def _differences(flow: Flow, user: Any) -> dict[str, Any]:
    """Both clusters' topics, ACLs and addresses, read now, for who may see them. 403, 429; 502 where one can't be asked; 503."""
    with _at_clusters("both clusters are read", "pages read the clusters", user) as ledger:
        log.info("%s compares the topics of %s", who(user), flow.name)
        configuration, of_flow = _flows().configuration, ledger.flow(flow.name)
        known = as_decided(with_connections(configuration, flow), of_flow)
        try:
            return differences_page(Opened(configuration, known, of_flow))
        except AirmirrorError as error:
            raise HTTPException(502, str(error)[:MOST_TOLD], HEADERS) from error


@contextmanager
def _at_clusters(what: str, of_all: str, user: Any) -> Iterator[Ledger]:
    """The ledger, for a page that reads the clusters too: ``what`` it does, ``of_all`` what those do that do so now. 403 for who
    may not see the clusters' connections; 429 where as many as are allowed read them now; 503."""
    if not security.may_read_records(user):
        raise HTTPException(403, f"{what} for whoever may see Airflow's connections", HEADERS)
    try:
        with turn(), ledger_here() as ledger:
            yield ledger
    except BadConnection as error:
        raise HTTPException(503, f"a cluster's connection can't be used: {type(error).__name__}", HEADERS) from error
    except TooManyReaders:
        raise HTTPException(429, f"as many {of_all} now as are allowed: ask again", HEADERS) from None


def _named(shown: Shown) -> dict[str, Any]:
    return {"flow": shown.flow.name, "dag_id": shown.dag_id}


def _answer(request: Request, made: Callable[[Ledger, int], Any]) -> Response:
    """The JSON of what ``made`` reads from the ledger, given the time in epoch ms; 304 where the caller has it already."""
    with ledger_here() as ledger:
        body = json.dumps(made(ledger, int(time.time() * 1000)), separators=(",", ":"), allow_nan=False).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = HEADERS | {"ETag": tag}
    if tag in (sent.strip().removeprefix("W/") for sent in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


@contextmanager
def ledger_here() -> Iterator[Ledger]:
    """The ledger; 503 where it can't be read."""
    try:
        yield opened(deployment().ledger)
    except NoLedger as error:
        said = "there is no ledger; the first window of a DAG replicate.<source>.<target> makes it"
        raise HTTPException(503, said, HEADERS | {"X-Airmirror": "no ledger"}) from error
    except BadConnection:  # of a page that reads the clusters too, which tells it
        raise
    except AirmirrorError as error:  # without its text, which names places and users
        raise HTTPException(503, f"the ledger can't be read: {type(error).__name__}", HEADERS) from error

"""``POST /airmirror/alerts``: webhooks of Alertmanager and Grafana start the run that an alert is about.

Both send an alert again and again while it fires; a run's id is made of the alert, so only the first one starts a run. What
fires of a flow in one call, often a partition each, starts one run: a queue of them would keep scheduled windows waiting.
https://prometheus.io/docs/alerting/latest/configuration/#webhook_config (version 4),
https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from airflow.api.common.trigger_dag import trigger_dag
from airflow.exceptions import DagNotFound, DagRunAlreadyExists
from airflow.models import DagModel, DagRun
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType
from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, ValidationError
from sqlalchemy.exc import IntegrityError

from airmirror.errors import AirmirrorError
from airmirror.on_airflow.dags.common import id_of
from airmirror.on_airflow.dags.forms import is_partial
from airmirror.on_airflow.deployment import deployment
from airmirror.partitions import grouped
from airmirror.report.markdown import escape
from airmirror.topics.sound import sound
from airmirror.web.tokens import RateLimit, caller_of

_PLAIN_URL = re.compile(r"https?://[\w.:/?&=%+#~,;@-]+")  # has nothing that Markdown obeys
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Alert(BaseModel):
    """One alert. Its labels name the flow: ``flow``, or ``source`` and ``target``; ``topic`` and ``partition`` narrow down."""

    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    annotations: dict[str, str] = Field(default_factory=dict)
    starts_at: datetime = Field(alias="startsAt")
    generator_url: str = Field("", alias="generatorURL")
    fingerprint: str = ""

    @property
    def flow(self) -> str:
        return self.labels.get("flow") or "->".join(self.labels.get(name, "") for name in ("source", "target"))

    @property
    def run_id(self) -> str:
        """The same for every time that the alert is sent, and another one when it fires again. Raises ValueError."""
        labels = json.dumps(self.labels, sort_keys=True).encode()
        name = self.fingerprint if _PLAIN.fullmatch(self.fingerprint) else hashlib.sha256(labels).hexdigest()[:16]
        return f"alert__{name}__{self.began.isoformat()}"

    @property
    def began(self) -> datetime:
        """When it began to fire. Raises ValueError."""
        began = self.starts_at if self.starts_at.tzinfo else self.starts_at.replace(tzinfo=UTC)
        try:
            return began.astimezone(UTC)
        except OverflowError as error:  # the year 1, east of Greenwich
            raise ValueError(f"startsAt={began.isoformat()} is no time") from error

    def choice(self) -> dict[str, Any]:
        """Return the run's configuration, narrowed as asked. Raises ValueError for a partition that is no number."""
        chosen: dict[str, Any] = {}
        if topic := self.labels.get("topic"):
            chosen["topics"] = [topic]
        if partition := self.labels.get("partition"):
            if not partition.isdecimal():
                raise ValueError(f"label partition={partition!r} is no partition number")
            chosen["partitions"] = [int(partition)]
        return chosen

    def note(self, receiver: str, count: int = 1) -> str:
        """Return the note that names the alert, for those who find the run, as Markdown. Labels have names of Kafka in them.

        ``count``: of as many alerts, of which this one is the newest.
        """
        by = f"{count} alerts of {receiver}, the newest" if count > 1 else f"an alert of {receiver}"
        labels = ", ".join(escape(f"{name}={value}") for name, value in sorted(self.labels.items()))
        summary = self.annotations.get("summary") or self.annotations.get("description") or ""
        url = self.generator_url if _PLAIN_URL.fullmatch(self.generator_url) else escape(self.generator_url)
        lines = (f"Started by {by}: {labels}", escape(summary, 1000), url)
        return "\n".join(line for line in lines if line)[:1000]


class Webhook(BaseModel):
    """The needed part of a webhook's body; whatever else it has is left alone."""

    alerts: list[Alert]


MOST_BYTES = 1_000_000


def alerts_router() -> APIRouter:
    """The route, for callers with the token of one of the deployment's receivers."""
    receiver = Depends(caller_of(lambda: deployment().alert_receivers, RateLimit()))
    router = APIRouter()

    @router.post("/alerts", dependencies=[receiver])  # before anything is read of the body
    def alerts(body: Annotated[bytes, Depends(_limited_body)], caller: str = receiver) -> JSONResponse:
        """Starts a run for the alerts of a flow that fire for the first time; says what became of each."""
        try:
            webhook = Webhook.model_validate_json(body)
        except ValidationError as error:
            raise HTTPException(422, error.errors(include_url=False, include_input=False)) from error
        dags = {flow.name: id_of("replicate", flow) for flow in sound(deployment().config).configuration.enabled}
        answers = _answers(webhook.alerts, caller, dags)
        # What can be started is, whatever else the group holds; the worst is the answer's status.
        status = max((code for code, _ in answers), default=200)
        return JSONResponse({"alerts": [answer for _, answer in answers]}, status)

    return router


Answer = tuple[int, dict[str, Any]]  # the HTTP status, and what to tell of an alert


def _answers(alerts: Sequence[Alert], receiver: str, dags: Mapping[str, str]) -> list[Answer]:
    """Start a run for each flow that alerts of a call want one of; the answer for each alert."""
    answers = [_without_run(alert, dags) for alert in alerts]
    firing = grouped((alert.flow, alert) for alert, answer in zip(alerts, answers, strict=True) if answer is None)
    started = {flow: _start(group, receiver, dags) for flow, group in firing.items()}
    return [
        (status, {"fingerprint": alert.fingerprint, "flow": alert.flow} | told)
        for alert, answer in zip(alerts, answers, strict=True)
        for status, told in [answer or started[alert.flow]]
    ]


def _without_run(alert: Alert, dags: Mapping[str, str]) -> Answer | None:
    """The answer for an alert that starts nothing, whatever else was started; None: it wants a run."""
    if alert.flow not in dags:
        return 404, {"outcome": "unknown flow", "known": sorted(dags)}
    if alert.status == "resolved":
        return 200, {"outcome": "resolved: nothing to do"}
    try:
        alert.choice(), alert.run_id
    except ValueError as error:
        return 422, {"outcome": str(error)}
    return None


def _start(alerts: Sequence[Alert], receiver: str, dags: Mapping[str, str]) -> Answer:
    """Start a run for what fires of one flow: narrowed as one alert asks, of the whole flow for several. It has the newest one's
    name: what began before has its run in this one too."""
    newest = max(alerts, key=lambda alert: (alert.began, alert.run_id))
    dag_id, run_id, conf = dags[newest.flow], newest.run_id, newest.choice()
    if len(alerts) > 1:
        run_id, conf = run_id.replace("alert__", "alerts__", 1), {}
    try:
        run_id, outcome = start_run(dag_id, run_id, conf, note=newest.note(receiver, len(alerts)), user=receiver)
    except NoSuchDag as error:
        return 404, {"outcome": str(error), "known": sorted(dags)}
    return 200, {"dag_id": dag_id, "run_id": run_id, "outcome": outcome}


async def _limited_body(request: Request) -> bytes:
    """The body, of a megabyte at most; 413 as soon as it is longer."""
    too_long = HTTPException(413, f"at most {MOST_BYTES} bytes")
    if int(request.headers.get("content-length") or 0) > MOST_BYTES:
        raise too_long
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise too_long
    return bytes(body)


class NoSuchDag(AirmirrorError):
    """A DAG that Airflow does not have (yet)."""

    dag_id: str
    says = "Airflow has no DAG {0.dag_id!r} (yet): see its import errors, and AIRMIRROR_CONFIG of its DAG processor"


def start_run(dag_id: str, run_id: str, conf: Mapping[str, Any], *, note: str, user: str) -> tuple[str, str]:
    """Queue a run; the run that is there now, and the outcome. Where one of that id is there already, or one of the whole flow
    waits, nothing is done. Raises NoSuchDag."""
    queued = DagRun.find(dag_id=dag_id, state=DagRunState.QUEUED)
    if waits := [run.run_id for run in queued if run.run_id != run_id and not is_partial(run.conf or {})]:
        return waits[0], "a run waits already"
    try:
        trigger_dag(
            dag_id,
            triggered_by=DagRunTriggeredByType.REST_API,
            triggering_user_name=user,
            run_id=run_id,
            conf=dict(conf),
            note=note,
        )
    except DagNotFound as error:
        raise NoSuchDag(dag_id) from error
    except DagRunAlreadyExists:
        return run_id, "started before"
    except IntegrityError:  # another worker of the API server was asked at the same moment
        if not DagRun.find(dag_id=dag_id, run_id=run_id):
            raise
        return run_id, "started before"
    found = DagModel.get_current(dag_id)
    return run_id, "queued: the DAG is paused" if found is not None and found.is_paused else "started"

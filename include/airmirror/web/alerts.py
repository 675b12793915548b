"""``POST /airmirror/alerts``: webhooks of Alertmanager and Grafana start the run that an alert is about.

Both send an alert again and again while it fires; a run's id is made of the alert, so only the first one starts a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from airmirror.on_airflow.dags.common import id_of
from airmirror.on_airflow.deployment import deployment
from airmirror.topics.sound import sound
from airmirror.web.rates import RateLimit
from airmirror.web.runs import NoSuchDag, start_run
from airmirror.web.tokens import caller_of
from airmirror.web.webhooks import Alert, Webhook

MOST_BYTES = 1_000_000


def alerts_router() -> APIRouter:
    """The route, for callers with the token of one of the deployment's receivers."""
    receiver = Depends(caller_of(lambda: deployment().alert_receivers, RateLimit()))
    router = APIRouter()

    @router.post("/alerts", dependencies=[receiver])  # before anything is read of the body
    def alerts(body: Annotated[bytes, Depends(_limited_body)], caller: str = receiver) -> JSONResponse:
        """Starts a run for every alert that fires for the first time; says what became of each."""
        try:
            webhook = Webhook.model_validate_json(body)
        except ValidationError as error:
            raise HTTPException(422, error.errors(include_url=False, include_input=False)) from error
        dags = {flow.name: id_of("replicate", flow) for flow in sound(deployment().config).configuration.enabled}
        answers = [_answer(alert, caller, dags) for alert in webhook.alerts]
        # What can be started is, whatever else the group holds; the worst is the answer's status.
        status = max((code for code, _ in answers), default=200)
        return JSONResponse({"alerts": [answer for _, answer in answers]}, status)

    return router


def _answer(alert: Alert, receiver: str, dags: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    """The HTTP status and what to tell of one alert."""
    told: dict[str, Any] = {"fingerprint": alert.fingerprint, "flow": alert.flow}
    if alert.flow not in dags:
        return 404, told | {"outcome": "unknown flow", "known": sorted(dags)}
    if alert.status == "resolved":
        return 200, told | {"outcome": "resolved: nothing to do"}
    try:
        choice, run_id = alert.choice(), alert.run_id
        run = start_run(dags[alert.flow], run_id, choice, note=alert.note(receiver), user=receiver)
    except ValueError as error:
        return 422, told | {"outcome": str(error)}
    except NoSuchDag as error:
        return 404, told | {"outcome": str(error), "known": sorted(dags)}
    told |= {"dag_id": dags[alert.flow], "run_id": run_id}
    if not run.is_new:
        return 200, told | {"outcome": "started before"}
    return 200, told | {"outcome": "queued: the DAG is paused" if run.is_paused else "started"}


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

"""``on.failure.notifier``: any Airflow notifier, called once an incident: by the first run that fails after one that did not."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.on_airflow.deployment import deployment

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.ledger import FlowLedger

log = logging.getLogger(__name__)

KEY = "on.failure.notifier"
INCIDENT = "incident"  # a gauge of the ledger, by the kind of DAG: 1 while runs fail


class BadNotifier(AirmirrorError):
    """A notifier that can't be made."""

    flow: str
    value: str
    reason: str

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r}: {KEY} = {self.value}: {self.reason}; write the path of a class, and its arguments as JSON, as "
            'in `airflow.providers.smtp.notifications.smtp.SmtpNotifier {"to": "ops@example.org"}`'
        )


def callbacks(flow: Flow, kind: str, counts: Callable[[Context], bool] = lambda _: True) -> dict[str, Any]:
    """A DAG's or a task's arguments: what it calls when it has failed, and when it has not. Raises BadNotifier.

    ``counts``: whether a run does; it is nobody's incident where a run that a person triggers for something else fails.
    """
    value = flow.settings.on_failure_notifier
    if not value:
        return {}
    notifier = _notifier(flow.name, value)

    def failed(context: Context) -> None:
        if counts(context) and not _told(flow.name, kind):
            notifier(context)  # first: where it fails, nobody has heard of it, and the next run tells
            _note(flow.name, kind, True)

    def succeeded(context: Context) -> None:
        if counts(context) and _told(flow.name, kind):
            _note(flow.name, kind, False)

    return {"on_failure_callback": failed, "on_success_callback": succeeded}


def _notifier(flow: str, value: str) -> Callable[[Context], None]:
    from airflow.sdk import BaseNotifier

    path, _, text = value.strip().partition(" ")
    try:
        found: Any = resolve_name(path)
        if not (isinstance(found, type) and issubclass(found, BaseNotifier)):  # nothing else is called
            raise BadNotifier(flow, path, "it is no Airflow notifier (airflow.sdk.BaseNotifier)")
        made: Callable[[Context], None] = found(**json.loads(text or "{}"))
    except BadNotifier:
        raise
    except Exception as error:  # of whatever its module or its constructor does: other flows have their DAGs
        reason = f"{type(error).__name__}: {error}"
        raise BadNotifier(flow, path, reason) from error  # its arguments may hold a secret
    return made


def _told(flow: str, kind: str) -> bool:
    """Return whether an earlier run has told of it. While the ledger is away each failure is told: nothing can be noted."""
    return bool(_in_ledger(flow, lambda own: own.numbers().get((INCIDENT, kind))))


def _note(flow: str, kind: str, failed: bool) -> None:
    _in_ledger(flow, lambda own: own.note({}, {(INCIDENT, kind): float(failed)}))


def _in_ledger(flow: str, work: Callable[[FlowLedger], Any]) -> Any:
    """Return what ``work`` does; None while the ledger is away."""
    from airmirror.ledger import Ledger

    try:
        with Ledger(deployment().ledger) as ledger:
            return work(ledger.flow(flow))
    except AirmirrorError as error:
        log.warning("Whether others have failed before is not known: %s", error)
        return None

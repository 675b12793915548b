"""Starting a run of a DAG from the API server, once for every run id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow.api.common.trigger_dag import trigger_dag
from airflow.exceptions import DagNotFound, DagRunAlreadyExists
from airflow.models import DagModel, DagRun
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy.exc import IntegrityError

from airmirror.errors import AirmirrorError


@dataclass(eq=False)
class NoSuchDag(AirmirrorError):
    """A DAG that Airflow does not have (yet)."""

    dag_id: str

    def __str__(self) -> str:
        return f"Airflow has no DAG {self.dag_id!r} (yet): see its import errors, and AIRMIRROR_CONFIG of its DAG processor"


@dataclass(frozen=True)
class StartedRun:
    """A run that is there now. ``is_new``: this call has made it."""

    is_new: bool
    is_paused: bool


def start_run(dag_id: str, run_id: str, conf: Mapping[str, Any], *, note: str, user: str) -> StartedRun:
    """Queue a run; where one of that id is there already, nothing is done. Raises NoSuchDag."""
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
        return StartedRun(is_new=False, is_paused=_is_paused(dag_id))
    except IntegrityError:  # another worker of the API server was asked at the same moment
        if not DagRun.find(dag_id=dag_id, run_id=run_id):
            raise
        return StartedRun(is_new=False, is_paused=_is_paused(dag_id))
    return StartedRun(is_new=True, is_paused=_is_paused(dag_id))


def _is_paused(dag_id: str) -> bool:
    found = DagModel.get_current(dag_id)
    return bool(found is not None and found.is_paused)

"""The permissions of pages: Airflow's own rules. The only place that imports what Airflow does not promise to keep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user, requires_access_dag, requires_access_view
from airflow.models import DagModel, DagRun
from airflow.utils.session import create_session
from fastapi import Depends
from sqlalchemy import func, select


def may_see_plugins() -> Any:
    """A dependency: the caller has logged in to Airflow and may see its plugins; else 401 or 403."""
    return Depends(requires_access_view(AccessView.PLUGINS))


def may_see_dag() -> Any:
    """A dependency: the caller may read the runs of the DAG that the path names as ``dag_id``; else 401 or 403.

    It passes for a DAG that does not exist.
    """
    return Depends(requires_access_dag("GET", DagAccessEntity.RUN))


def logged_in() -> Any:
    """A dependency: the user; 401 for a caller who has not logged in."""
    return Depends(get_user)


def may_read_records(user: Any) -> bool:
    """Tell of a user: may see Airflow's connections, and so what they give access to."""
    return bool(get_auth_manager().is_authorized_connection(method="GET", user=user))


def readable(user: Any, dag_ids: Iterable[str]) -> dict[str, bool]:
    """Of these DAGs those whose runs a user may read and that Airflow has, each with whether it is paused."""
    with create_session() as session:
        query = select(DagModel.dag_id, DagModel.is_paused).where(DagModel.dag_id.in_(list(dag_ids)))
        found = dict(session.execute(query).tuples().all())
        teams = DagModel.get_dag_id_to_team_name_mapping(list(found), session=session)
    manager = get_auth_manager()
    return {
        dag_id: bool(paused)
        for dag_id, paused in found.items()
        if manager.is_authorized_dag(
            method="GET",
            access_entity=DagAccessEntity.RUN,
            details=DagDetails(id=dag_id, team_name=teams.get(dag_id)),
            user=user,
        )
    }


def red(dag_ids: Iterable[str]) -> dict[str, str]:
    """Of these DAGs those whose last finished run failed, each with that run's id."""
    finished = (
        select(func.max(DagRun.id))
        .where(DagRun.dag_id.in_(list(dag_ids)), DagRun.state.in_(("success", "failed")))
        .group_by(DagRun.dag_id)
    )
    query = select(DagRun.dag_id, DagRun.run_id).where(DagRun.id.in_(finished), DagRun.state == "failed")
    with create_session() as session:
        return dict(session.execute(query).tuples().all())

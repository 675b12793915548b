"""The things that all DAGs share: their names, start, owner and retries, the tags by which people find them, and links."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from airflow.sdk import DAG, BaseOperator, BaseOperatorLink, conf

from airmirror.config import Flow

START = datetime(2026, 1, 1, tzinfo=UTC)
# Template fields of what triggers a DAG; the standard provider of Airflow 3.2 serializes an unset date with its address, which
# would make a new version of the DAG of each parse.
TRIGGERING = ("trigger_dag_id",)
AT_ONCE = 1000  # runs of a DAG that people trigger: none waits for others, which may wait for people for days
RETRY_DELAY = timedelta(seconds=15)  # the lease of a window that died ends after 30 s


def new_dag(dag_id: str, schedule: Any, *, max_active_runs: int = 1, **more: Any) -> DAG:
    """A DAG without catch-up, whose tasks are tried again; on from the start where it runs only when it is triggered. ``more``:
    arguments of ``DAG``."""
    return DAG(
        dag_id,
        schedule=schedule,
        start_date=START,
        catchup=False,
        max_active_runs=max_active_runs,
        is_paused_upon_creation=False if schedule is None else None,
        default_args={"owner": "airmirror", "retries": 3, "retry_delay": RETRY_DELAY},
        **more,
    )


def id_of(kind: str, flow: Flow) -> str:
    return f"{kind}.{flow.source.alias}.{flow.target.alias}"


def tags(flow: Flow) -> list[str]:
    return [f"flow:{flow.name}", f"source:{flow.source.alias}", f"target:{flow.target.alias}"]


ASK = "ask"  # the task of `decide.…` that asks


def question_of(dag_id: str, run: str) -> str:
    """The page of Airflow for the answer: the task's own, which is wide enough to show all of the question."""
    base = str(conf.get("api", "base_url", fallback="") or "").rstrip("/")
    return f"{base}/dags/{quote(dag_id)}/runs/{quote(run)}/tasks/{ASK}/required_actions"


class DataDocsLink(BaseOperatorLink):
    """To the Data Docs of a task's judgement, passed or not. Airflow asks for the address when the task has ended."""

    name, xcom_key = "Data Docs", "data_docs"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        return link_to(getattr(operator, "page", ""))


class ReportLink(DataDocsLink):
    """To an audit's report, passed or not."""

    name, xcom_key = "Report", "audit_report"


class Reports:
    """The mixin of tasks that write a page: the button *Report* leads to it."""

    operator_extra_links: Collection[BaseOperatorLink] = (ReportLink(),)
    page = ""

    def show(self, page: str) -> None:
        self.page = page


def link_to(page: str) -> str:
    """Return the address of a page of the ledger, from Airflow's base path on; empty: there is none."""
    return f"airmirror/pages/{quote(page)}" if page else ""

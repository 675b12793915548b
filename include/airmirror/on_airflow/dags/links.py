"""Buttons from a task to its page: relative, so that they lead there under any base path."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseOperator, BaseOperatorLink

from airmirror.on_airflow.deployment import deployment

DATA_DOCS, REPORT = "data_docs", "audit_report"


class DataDocsLink(BaseOperatorLink):
    """To the Data Docs of a task's judgement, passed or not. Airflow asks for the address when the task has ended."""

    name, key = "Data Docs", DATA_DOCS

    @property
    def xcom_key(self) -> str:
        return self.key

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        return link_to(getattr(operator, "page", None))


class ReportLink(DataDocsLink):
    """To an audit's report, passed or not."""

    name, key = "Report", REPORT


def link_to(page: Path | None) -> str:
    """Return the path of a page, from Airflow's base path on; empty if nothing serves it."""
    if page is None:
        return ""
    return f"airmirror/data-docs/{quote(str(page.relative_to(deployment().data_docs)))}"

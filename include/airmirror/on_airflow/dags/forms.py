"""Trigger forms: the fields that narrow a run, and the values of those for times; what is none of a form's fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from airflow.sdk import BaseOperator, Context, Param

from airmirror.config import Flow
from airmirror.errors import AirmirrorError

OF_AIRFLOW = ("openlineage",)  # what a task that triggers a run adds to its configuration


class UnknownFields(AirmirrorError):
    """A run whose configuration has keys that its DAG does not read. Nothing was done."""

    dag_id: str
    unknown: tuple[str, ...]
    known: tuple[str, ...]

    def __str__(self) -> str:
        closest = [found for each in self.unknown for found in get_close_matches(each, self.known, n=1, cutoff=0.4)]
        hint = f"; the closest known one is {closest[0]!r}" if closest else ""
        return (
            f"{self.dag_id} does not know {', '.join(map(repr, self.unknown))} in the configuration of this run{hint}. Nothing "
            f"was done: start another run, with none but {', '.join(self.known) or '{}'}"
        )


def check_conf(task: BaseOperator, context: Context, also: Iterable[str] = ()) -> None:
    """Raise UnknownFields where the run was triggered with what is no field of its DAG's form; ``also``: what it reads besides.

    Airflow takes any key, and a dry run that is misspelt would write.
    """
    if given := getattr(context.get("dag_run"), "conf", None):
        known = {*task.dag.params, *also}
        if unknown := sorted({*given} - known - {*OF_AIRFLOW}):
            raise UnknownFields(task.dag.dag_id, tuple(unknown), tuple(sorted(known)))


def form(flow: Flow) -> dict[str, Param]:
    """Return the fields of a flow's DAGs."""
    return {
        "topics": texts_field("Topics", "Only these topics of the source. Empty: all that the flow mirrors."),
        "partitions": Param(
            None,
            type=["null", "array"],
            items={"type": "integer", "minimum": 0},
            title="Partitions",
            description_md="Only these partition numbers. Empty: all.",
        ),
        "verify": Param(
            None,
            type=["null", "string"],
            enum=[None, "readback", "acks"],
            title="Verify mode",
            description_md=f"The proof of the window. Empty: as configured (`{flow.window.verify}`).",
        ),
        "dry_run": dry_run_field("Tell in the log of `sync_topics` what would be done; write nothing."),
    }


def is_partial(given: Mapping[str, Any]) -> bool:
    """Return whether the values of ``form`` keep a run from copying everything that is new."""
    return any(given.get(name) for name in ("topics", "partitions", "dry_run"))


def texts_field(title: str, description: str) -> Param:
    return Param(None, type=["null", "array"], items={"type": "string"}, title=title, description_md=description)


def choice_field(default: str, choices: Iterable[str], title: str, description: str) -> Param:
    return Param(default, type="string", enum=[*choices], title=title, description_md=description)


def dry_run_field(description: str) -> Param:
    return Param(False, type="boolean", title="Dry run", description_md=description)


def interval_fields(description: str) -> dict[str, Param]:
    """Fields for a range of time, either end of which may be empty."""
    return {
        name: Param(None, type=["null", "string"], format="date-time", title=title, description_md=description)
        for name, title in (("from", "From"), ("to", "Until before"))
    }


def interval_ms(context: Context) -> tuple[int | None, int | None]:
    """Return the values of ``interval_fields`` in epoch milliseconds; None: it is empty."""
    begin, end = (context["params"].get(name) for name in ("from", "to"))
    return _ms(begin), _ms(end)


def _ms(given: str | None) -> int | None:
    return int(datetime.fromisoformat(given).timestamp() * 1000) if given else None

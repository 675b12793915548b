"""What the gate holds as one incident: the run of ``decide.…`` that asks about it, and the page where it is answered."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

from airflow.sdk import conf

ASK = "ask"  # the task of `decide.…` that asks


def incident_id(held: list[list[Any]]) -> str:
    """The same for the same partitions, held at the same offsets."""
    return f"incident__{hashlib.sha256(json.dumps(sorted(held)).encode()).hexdigest()[:16]}"


def question_of(dag_id: str, held: list[list[Any]]) -> str:
    """The page of Airflow for the answer: the task's own, which is wide enough to show all of the question."""
    base = str(conf.get("api", "base_url", fallback="") or "").rstrip("/")
    return f"{base}/dags/{quote(dag_id)}/runs/{incident_id(held)}/tasks/{ASK}/required_actions"

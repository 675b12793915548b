"""The people of a question under *Required Actions*: who may answer it, and who has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airmirror.config import Flow


def respondents(flow: Flow) -> list[dict[str, str]] | None:
    """The users who may answer, by their ids in Airflow (``decide.users``); None: all who may answer there."""
    return [{"id": user, "name": user} for user in flow.settings.decide_users if user] or None


def answered_by(given: Mapping[str, Any]) -> str:
    """The user who has answered, from what the task that asked has returned."""
    user = given.get("responded_by_user") or {}
    return str(user.get("name") or user.get("id") or "a user of Airflow")

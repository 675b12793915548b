"""A notifier that writes into a file, for DAGs of the Airflow under test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier


class FileNotifier(BaseNotifier):
    """One line an incident: the run."""

    template_fields = ("path",)

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def notify(self, context: Any) -> None:
        run = context["dag_run"]
        with Path(self.path).open("a") as file:
            file.write(f"{run.dag_id} {run.run_id}\n")

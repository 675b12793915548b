"""Asking an operator what becomes of partitions that the gate holds: one run of ``decide.…`` an incident."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk.exceptions import AirflowSkipException

from airmirror.on_airflow.dags.common import TRIGGERING
from airmirror.on_airflow.dags.incidents import incident_id, question_of
from airmirror.on_airflow.dags.operators import HELD
from airmirror.on_airflow.pausing import dag_is_paused

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)


class AskToDecide(TriggerDagRunOperator):
    """Starts the run in which an operator decides what the gate holds: one an incident, however often it is judged again."""

    template_fields = TRIGGERING

    def __init__(self, **arguments: Any) -> None:
        super().__init__(skip_when_already_exists=True, **arguments)

    def execute(self, context: Context) -> None:
        held = context["ti"].xcom_pull(task_ids="verify_window", key=HELD)
        if not held:
            raise AirflowSkipException("the gate holds nothing")
        self.trigger_run_id = incident_id(held)
        self.conf = {"held": held}
        log.info("To be answered here: %s", question_of(self.trigger_dag_id, held))
        if dag_is_paused(self.trigger_dag_id):
            log.warning("%s is paused, so that it asks no operator: switch it on.", self.trigger_dag_id)
        super().execute(context)

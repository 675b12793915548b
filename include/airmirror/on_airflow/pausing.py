"""Pausing a DAG ends the window that runs: asked of Airflow every two seconds, in a thread alongside the task's work."""

from __future__ import annotations

import logging
from collections.abc import Callable

from airmirror.errors import AirmirrorError
from airmirror.threads import BackgroundThread

log = logging.getLogger(__name__)

EVERY_SECONDS = 2.0


class WindowPaused(AirmirrorError):
    """A window that was ended because its DAG was paused."""

    dag_id: str
    window: str
    says = (
        "window {0.window!r} was ended, because {0.dag_id} is paused: what it has committed counts, nothing of it is left "
        "open, and the next window continues from there"
    )


class PauseWatch(BackgroundThread):
    """Calls ``stop`` once the DAG is paused, again and again until the work has ended and it has succeeded; a context manager."""

    def __init__(self, is_paused: Callable[[], bool], stop: Callable[[], None], every: float = EVERY_SECONDS) -> None:
        super().__init__("pause watch")
        self.paused = False
        self._is_paused, self._stop, self._every = is_paused, stop, every

    def _run(self) -> None:
        stopped = True
        while not self._ended.wait(self._every):
            stopped = self._look()
        if not stopped:  # the work has ended, as a job that was interrupted does; what it has left has not
            self._look()

    def _look(self) -> bool:
        """Stop the work where the DAG is paused; whether nothing of that is left to do."""
        try:
            if not self.paused and self._is_paused():
                log.warning("The DAG is paused: the window is ended.")
                self.paused = True
            if self.paused:
                self._stop()
        except Exception as error:  # of Airflow or a cluster: the next look may do
            log.warning("The task could not act on a pause of the DAG: %s", error)
            return not self.paused
        return True


def dag_is_paused(dag_id: str) -> bool:
    """Ask Airflow, through the task's supervisor, whether a DAG is paused.

    False in ``airflow dags test``: it runs what is paused, and its supervisor, in the task's own process, can't be asked in a
    second thread.
    """
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import DagResult, GetDag
    from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms

    supervisor = getattr(task_runner, "SUPERVISOR_COMMS", None)
    if supervisor is None or isinstance(supervisor, InProcessSupervisorComms):
        return False
    answer = supervisor.send(GetDag(dag_id=dag_id))
    return isinstance(answer, DagResult) and answer.is_paused

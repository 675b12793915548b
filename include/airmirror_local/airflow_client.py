"""The requests of the demo and the tests to Airflow's REST API: DAGs, runs, tasks and their logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

import httpx
from tenacity import Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

Found = TypeVar("Found")
ENDED = ("success", "failed")
RENEW_SECONDS = 600.0  # a token lives for a day; the demo may not
LIMIT = 100
PATIENCE_SECONDS = (
    400.0  # for what hangs, not for what a busy machine makes slow; a component that ended is noticed at once
)


@dataclass
class AirflowClient:
    """A client that has logged in; a context manager. Every call raises httpx.HTTPStatusError for what Airflow refuses."""

    url: str
    user: str
    password: str = field(repr=False)
    check: Callable[[], None] = lambda: None  # called while waiting; raises where it is in vain

    def __post_init__(self) -> None:
        self._http = httpx.Client(base_url=self.url, timeout=60, trust_env=False)
        self._until = 0.0

    def __enter__(self) -> AirflowClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def request(self, method: str, path: str, body: Any = None, **parameters: Any) -> Any:
        """One call of ``/api/v2``; the decoded JSON answer, or None where it is empty."""
        if time.monotonic() > self._until:
            answer = self._http.post("/auth/token", json={"username": self.user, "password": self.password})
            answer.raise_for_status()
            self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
            self._until = time.monotonic() + RENEW_SECONDS
        answer = self._http.request(method, f"/api/v2{path}", json=body, params=parameters)
        if answer.is_error:
            raise httpx.HTTPStatusError(f"{answer.status_code}: {answer.text}", request=answer.request, response=answer)
        return answer.json() if answer.content else None

    def dag_ids(self) -> list[str]:
        found: list[str] = []
        while True:  # a page at a time
            answer = self.request("GET", "/dags", exclude_stale=True, limit=LIMIT, offset=len(found))
            found += [dag["dag_id"] for dag in answer["dags"]]
            if not answer["dags"] or len(found) >= answer["total_entries"]:
                return found

    def import_errors(self) -> list[str]:
        return [error["stack_trace"] for error in self.request("GET", "/importErrors")["import_errors"]]

    def health(self) -> dict[str, Any]:
        """Return each component's last report, and its time."""
        return dict(self.request("GET", "/monitor/health"))

    def pause(self, dag_id: str, paused: bool = True) -> None:
        self.request("PATCH", f"/dags/{dag_id}", {"is_paused": paused})

    def unpause(self, dag_id: str) -> None:
        self.pause(dag_id, False)

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None) -> str:
        """The new run's id."""
        run = self.request("POST", f"/dags/{dag_id}/dagRuns", {"logical_date": None, "conf": conf or {}})
        return str(run["dag_run_id"])

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """The latest runs, the newest first."""
        answer = self.request("GET", f"/dags/{dag_id}/dagRuns", order_by="-run_after", limit=LIMIT)
        return list(answer["dag_runs"])

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        return dict(self.request("GET", f"/dags/{dag_id}/dagRuns/{run_id}"))

    def fail(self, dag_id: str, run_id: str) -> None:
        """Mark a run failed, which ends its tasks, deferred ones too."""
        self.request("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}", {"state": "failed"})

    def tasks(self, dag_id: str, run_id: str) -> dict[str, dict[str, Any]]:
        """The run's task instances by task id."""
        answer = self.request("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances", limit=LIMIT)
        return {task["task_id"]: task for task in answer["task_instances"]}

    def log(self, dag_id: str, run_id: str, task_id: str, attempt: int = 1) -> str:
        """A task's log as text, one line an event, with the messages of exceptions."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{attempt}"
        content = self.request("GET", path, full_content=True)["content"]
        return "\n".join(_line(line) for line in content)

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/{key}"
        return self.request("GET", path, deserialize=True)["value"]

    def clear(self, dag_id: str, run_id: str, *task_ids: str, downstream: bool = True) -> None:
        """Run tasks of a run again."""
        body = {
            "dag_run_id": run_id,
            "task_ids": list(task_ids),
            "dry_run": False,
            "only_failed": False,
            "include_downstream": downstream,
            "reset_dag_runs": True,
        }
        self.request("POST", f"/dags/{dag_id}/clearTaskInstances", body)

    def wait(self, look: Callable[[], Found], seconds: float = PATIENCE_SECONDS, every: float = 0.5) -> Found:
        """Ask until the answer is true; TimeoutError after ``seconds``, ProcessFailed where Airflow has ended meanwhile."""

        def asked() -> Found:
            self.check()
            return look()

        def failed(_state: object) -> Found:
            raise TimeoutError(f"not within {seconds:g} s: {look()!r}; Airflow: {self.health()}")

        waiting = Retrying(
            retry=retry_if_result(lambda found: not found) | retry_if_exception_type(httpx.TransportError),
            wait=wait_fixed(every),
            stop=stop_after_delay(seconds),
            retry_error_callback=failed,
        )
        return waiting(asked)

    def wait_for_run(self, dag_id: str, run_id: str, seconds: float = PATIENCE_SECONDS) -> str:
        """The state in which a run ended: ``success`` or ``failed``."""
        with self.telling_what_waits(dag_id, run_id):
            state = self.wait(lambda: found if (found := self.run(dag_id, run_id)["state"]) in ENDED else None, seconds)
        return str(state)

    @contextmanager
    def telling_what_waits(self, dag_id: str, run_id: str) -> Iterator[None]:
        """Note on a TimeoutError which tasks of the run have not succeeded, with the ends of their logs."""
        try:
            yield
        except TimeoutError as error:
            for name, found in self.tasks(dag_id, run_id).items():
                if found["state"] not in ("success", "skipped"):
                    error.add_note(f"{name}: {found['state']}, attempt {found['try_number']}")
                    if found["try_number"]:
                        error.add_note(self.log(dag_id, run_id, name, found["try_number"])[-3000:])
            raise


def _line(line: Any) -> str:
    if not isinstance(line, dict):
        return str(line)
    errors = [f"{error['exc_type']}: {error['exc_value']}" for error in line.get("error_detail") or ()]
    return "\n".join([str(line.get("event", line)), *errors])

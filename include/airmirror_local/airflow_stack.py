"""A real Airflow as plain processes: database, API server, scheduler, DAG processor and triggerer on loopback.

Its home, SQLite database, passwords and logs lie in one directory. The components are started one by one, each in a
process group of its own: ``airflow standalone`` leaves children behind when it is ended.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from airmirror_local.airflow_client import AirflowClient
from airmirror_local.ports import LOOPBACK, answers, free_port
from airmirror_local.processes import Process, ProcessFailed, start_process, wait_until_ready
from airmirror_local.spark_connect import QUICK_START

START_SECONDS = 180
LOCKED_SECONDS = 60  # how long a writer waits for the others; with SQLite's 5 s the API answers 500 under load
USER = "admin"
COMPONENTS = {
    "API server": ("api-server", "--workers", "1"),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "DAG processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}
CELERY_WORKER = "Celery worker"
SECOND_SCHEDULER = "second scheduler"  # of a deployment that must not stop with one of them
MORE_COMPONENTS = {CELERY_WORKER: ("celery", "worker", "--skip-serve-logs"), SECOND_SCHEDULER: COMPONENTS["scheduler"]}
# What every task needs, loaded once: great_expectations alone takes seconds. Nothing of Airmirror itself: a task runs the code
# that is there when it starts.
PRELOADED = (
    "airflow.sdk",
    "airflow.executors.local_executor",
    "airflow.providers.standard.operators.hitl",
    "airflow.providers.standard.operators.trigger_dagrun",
    "confluent_kafka.admin",
    "great_expectations",
    "javaproperties",
    "kafka.protocol.admin",
    "kafka.protocol.consumer",
    "kafka.protocol.metadata",
    "kafka.protocol.producer",
    "llvmlite.binding",
)
Apart = Callable[[str], tuple[Sequence[str], Mapping[str, str]]]
HEALTH = {"scheduler": "scheduler", "dag_processor": "DAG processor", "triggerer": "triggerer"}


@dataclass
class AirflowStack:
    """A running Airflow. ``processes`` by component; ``environment`` is what every component (and command) needs."""

    directory: Path
    url: str
    password: str = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    processes: dict[str, Process]
    user: str = USER

    def client(self) -> AirflowClient:
        """A client that logs in as the user; it waits for nothing once a component has ended."""
        return AirflowClient(self.url, self.user, self.password, self.check)

    def check(self) -> None:
        """Raise ProcessFailed for a component that has ended by itself."""
        for process in list(self.processes.values()):
            if not process.running:
                raise ProcessFailed(process.name, "has ended", process.log, process.log_tail())

    def kill(self, component: str) -> None:
        """Kill a component and all that it has started; nobody takes it for a failure."""
        self.processes.pop(component).kill()

    def restart(self, component: str) -> None:
        """Start a component that was killed again."""
        self.processes[component] = _start(self.directory, component, self.environment)

    def command(self, *arguments: str, seconds: float = 120) -> str:
        """Run ``airflow arguments…`` and return what it prints. Raises CalledProcessError."""
        done = subprocess.run(
            [*_airflow(), *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=True,
            timeout=seconds,
        )
        return done.stdout

    def stop(self) -> None:
        """End every component and all that they have started, and wait for it."""
        for process in reversed(list(self.processes.values())):
            process.stop(seconds=5)  # a scheduler would wait for its tasks


def start_airflow(
    directory: Path,
    *,
    dags: Path,
    environment: Mapping[str, str] | None = None,
    parallelism: int = 4,
    port: int | None = None,
    on_start: object = None,
    database: str | None = None,
    celery_broker: str | None = None,
    apart: Apart = lambda component: ((), {}),
) -> AirflowStack:
    """Start Airflow with its home in ``directory``; returns when every component reports that it is healthy.

    ``environment`` goes to every component. ``database``: a URL instead of SQLite's. ``celery_broker``: the URL of a Redis;
    with it tasks run in a Celery worker, and there are two schedulers, which needs a PostgreSQL ``database``. ``apart``: of a
    component, the command that starts its own, and its own environment.
    Raises ProcessFailed with the end of the log of the one that failed.
    """
    directory = directory.resolve()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    port = port or free_port()
    url = f"http://{LOOPBACK}:{port}"
    password = secrets.token_urlsafe(12)
    passwords = directory / "passwords.json"
    with os.fdopen(os.open(passwords, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({USER: password}, file)
    settings = _settings(
        directory=directory, url=url, port=port, dags=dags, passwords=passwords, parallelism=parallelism
    )
    if database is not None:
        settings["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = database
    components = list(COMPONENTS)
    if celery_broker is not None and database is not None:
        settings |= {
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            "AIRFLOW__CELERY__BROKER_URL": celery_broker,
            "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{database}",
            "AIRFLOW__CELERY__WORKER_CONCURRENCY": str(parallelism),
        }
        components += MORE_COMPONENTS
    settings |= dict(environment or {})
    _migrate(directory, settings)
    stack = AirflowStack(directory, url, password, settings, {})
    try:
        for component in components:
            before, own = apart(component)
            stack.processes[component] = _start(directory, component, settings | dict(own), before)
            if callable(on_start):
                on_start(stack.processes[component])
        # The port is asked first: a client of HTTP reads all certificates of the machine before it connects.
        wait_until_ready(stack.processes["API server"], lambda: answers(port) and _answers(url), START_SECONDS)
        for name, component in HEALTH.items():
            wait_until_ready(stack.processes[component], lambda name=name: _healthy(url, name), START_SECONDS)  # type: ignore[misc]
    except BaseException:
        for process in stack.processes.values():
            process.kill()
        raise
    return stack


def _settings(directory: Path, url: str, port: int, dags: Path, passwords: Path, parallelism: int) -> dict[str, str]:
    sections = {
        "CORE": {
            "AUTH_MANAGER": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
            "DAGS_FOLDER": str(dags.resolve()),
            "EXECUTION_API_SERVER_URL": f"{url}/execution/",  # follows the port, or tasks die in the queue
            "EXECUTOR": "LocalExecutor",
            "FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "LOAD_EXAMPLES": "False",
            "MP_FORKSERVER_PRELOAD": ",".join(PRELOADED),
            "PARALLELISM": str(parallelism),  # each place is a process
            "PLUGINS_FOLDER": str(directory / "plugins"),
            "SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
            "SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        },
        "API": {
            "BASE_URL": url,
            "EXPOSE_CONFIG": "False",
            "HOST": LOOPBACK,
            "PORT": str(port),
            "SECRET_KEY": secrets.token_urlsafe(32),
            "WORKERS": "1",
        },
        "API_AUTH": {"JWT_SECRET": secrets.token_urlsafe(32)},
        "DATABASE": {
            "SQL_ALCHEMY_CONN": f"sqlite:///{directory / 'airflow.db'}?timeout={LOCKED_SECONDS}",
            "SQL_ALCHEMY_MAX_OVERFLOW": "-1",  # connections for all that wait; the API's threads are more than 15
        },
        "DAG_PROCESSOR": {"REFRESH_INTERVAL": "10", "MIN_FILE_PROCESS_INTERVAL": "15", "PARSING_PROCESSES": "1"},
        "LOGGING": {"BASE_LOG_FOLDER": str(directory / "logs"), "COLORED_CONSOLE_LOG": "False"},
        "SCHEDULER": {
            "ENABLE_HEALTH_CHECK": "False",
            "MP_START_METHOD": "forkserver",
            "ORPHANED_TASKS_CHECK_INTERVAL": "10",  # tasks of a scheduler that died are started again soon
            "SCHEDULER_HEARTBEAT_SEC": "1",
            "SCHEDULER_IDLE_SLEEP_TIME": "0.3",
        },
        "TRIGGERER": {"CAPACITY": "100"},
    }
    found = {f"AIRFLOW__{section}__{key}": value for section, keys in sections.items() for key, value in keys.items()}
    return found | {
        "AIRFLOW_HOME": str(directory),
        "_AIRFLOW__AS_LIBRARY": "",  # who starts it may have read connections without a database
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONUNBUFFERED": "1",
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))),  # spark-submit
        "SPARK_SUBMIT_OPTS": QUICK_START,
        "NO_PROXY": LOOPBACK,
        "no_proxy": LOOPBACK,
    }


def _airflow() -> list[str]:
    return [sys.executable, "-m", "airflow"]


def _migrate(directory: Path, settings: Mapping[str, str]) -> None:
    log = directory / "logs" / "migrate.log"
    process = start_process("airflow db migrate", [*_airflow(), "db", "migrate"], log, environment=settings)
    status = process.handle.wait(timeout=START_SECONDS)
    process.stop()
    if status:
        raise ProcessFailed(process.name, f"ended with status {status}", log, process.log_tail())


def _start(directory: Path, component: str, settings: Mapping[str, str], before: Sequence[str] = ()) -> Process:
    log = directory / "logs" / f"{component.lower().replace(' ', '-')}.log"
    command = [*before, *_airflow(), *(COMPONENTS | MORE_COMPONENTS)[component]]
    return start_process(f"Airflow {component}", command, log, environment=settings)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/api/v2/version", timeout=5, trust_env=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _healthy(url: str, component: str) -> bool:
    try:
        health = httpx.get(f"{url}/api/v2/monitor/health", timeout=5, trust_env=False).json()
    except (httpx.HTTPError, ValueError):
        return False
    return bool(health.get(component, {}).get("status") == "healthy")

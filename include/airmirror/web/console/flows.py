"""The flows that the console shows: those of the configuration, as its file is now."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from airmirror.config import Configuration, Flow
from airmirror.on_airflow.dags.failback import failback_id
from airmirror.on_airflow.dags.flows import OF_A_FLOW
from airmirror.on_airflow.dags.migrate import migrate_id
from airmirror.on_airflow.dags.replicate import dag_id
from airmirror.on_airflow.dags.takeover import takeover_id
from airmirror.topics.sound import sound


@dataclass(frozen=True)
class Flows:
    """The enabled flows by the id of their DAG ``replicate.…``; ``owners``: of each of their DAGs that one's.

    ``broken``: the names of flows that something is wrong with, which have no DAGs.
    """

    configuration: Configuration
    by_dag: dict[str, Flow]
    owners: dict[str, str]
    broken: tuple[str, ...]


def flows_of(config: Path) -> Flows:
    """Read the flows; a file that did not change is read once. Raises ConfigurationError, OSError."""
    found = config.stat()
    return _read(config, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4)
def _read(config: Path, _changed: int, _size: int) -> Flows:
    found = sound(config)
    by_dag = {dag_id(flow): flow for flow in found.configuration.enabled}
    ids = (*(make_id for make_id, _ in OF_A_FLOW), takeover_id, migrate_id, failback_id)
    owners = {make_id(flow): name for name, flow in by_dag.items() for make_id in ids}
    return Flows(found.configuration, by_dag, owners, tuple(sorted(found.broken)))

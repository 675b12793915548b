"""The flows that the console shows: those of the configuration, as its file is now."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from airmirror.config import Configuration, Flow
from airmirror.on_airflow.dags.common import id_of
from airmirror.on_airflow.dags.flows import OF_A_FLOW
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
    by_dag = {id_of("replicate", flow): flow for flow in found.configuration.enabled}
    owners = {id_of(kind, flow): name for name, flow in by_dag.items() for kind in OF_A_FLOW}
    return Flows(found.configuration, by_dag, owners, tuple(sorted(found.broken)))

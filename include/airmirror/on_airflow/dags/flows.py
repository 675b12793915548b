"""The flows of the DAG files: those that nothing is wrong with. What is wrong is one import error, of dags/configuration.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from airflow.sdk import DAG

from airmirror.config import Configuration, ConfigurationError, Flow, Problem
from airmirror.config.explain import line_of
from airmirror.errors import AirmirrorError
from airmirror.on_airflow.dags.notifications import KEY, callbacks
from airmirror.on_airflow.deployment import deployment
from airmirror.topics.sound import sound


def sound_configuration() -> Configuration | None:
    """The configuration with the flows that can run; None: there is nothing that can."""
    with suppress(ConfigurationError):
        return sound(deployment().config).configuration
    return None


def enabled_flows() -> tuple[Flow, ...]:
    """The enabled flows that can run."""
    configuration = sound_configuration()
    return configuration.enabled if configuration else ()


def dags_of(flows: Iterable[Flow], make: Callable[[Flow], DAG]) -> dict[str, DAG]:
    """A DAG for each flow, by its id; one that can't be made is left out."""
    found: dict[str, DAG] = {}
    for flow in flows:
        with suppress(AirmirrorError):
            dag = make(flow)
            found[dag.dag_id] = dag
    return found


def check_configuration() -> None:
    """Raises ConfigurationError with everything that is wrong: with flows that have no DAGs for it, and notifiers."""
    found = sound(deployment().config)
    problems = list(found.problems)
    for flow in found.whole.enabled:
        try:
            callbacks(flow, "replicate")
        except AirmirrorError as error:
            line, key = line_of(found.whole, flow.name, KEY)
            problems.append(Problem(line, key, str(error)))
    if problems:
        raise ConfigurationError(found.configuration.path, tuple(problems))

"""All DAGs of the configuration, and what is wrong with it.

A file with an import error has no DAGs in Airflow. So what is wrong with single flows is the import error of a second file
(``check_configuration``), and only what leaves no flow at all is that of the file with the DAGs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby

from airflow.sdk import DAG

from airmirror.config import Configuration, ConfigurationError, Flow, Problem
from airmirror.config.explain import line_of
from airmirror.config.pairs import heartbeat_flows
from airmirror.errors import AirmirrorError
from airmirror.on_airflow.dags.audit import audit_dag, replay_dag
from airmirror.on_airflow.dags.compare import compare_dag
from airmirror.on_airflow.dags.decide import decide_dag
from airmirror.on_airflow.dags.heartbeats import heartbeats_dag
from airmirror.on_airflow.dags.maintenance import maintenance_dag
from airmirror.on_airflow.dags.notifications import KEY, callbacks
from airmirror.on_airflow.dags.replicate import replicate_dag
from airmirror.on_airflow.dags.report import report_dag
from airmirror.on_airflow.deployment import deployment
from airmirror.topics.sound import sound

log = logging.getLogger(__name__)


def dags() -> dict[str, DAG]:
    """Make every DAG of the flows that can run, by its id; log what is wrong with the others.

    Raises ConfigurationError where something is wrong and no flow can run.
    """
    configuration, problems = _read()
    if problems and not _has_dags(configuration):
        raise ConfigurationError(configuration.path, problems)
    for problem in problems:
        log.warning("%s: %s", configuration.path, problem)
    return {dag.dag_id: dag for dag in _dags(configuration)}


def check_configuration() -> None:
    """Raise ConfigurationError with what is wrong with single flows; what leaves no flow is the error of ``dags``."""
    try:
        configuration, problems = _read()
    except ConfigurationError:
        return
    if problems and _has_dags(configuration):
        raise ConfigurationError(configuration.path, problems)


def _read() -> tuple[Configuration, tuple[Problem, ...]]:
    """The flows that can run, and everything that is wrong, with their notifiers too. Raises ConfigurationError."""
    found = sound(deployment().config)
    problems = list(found.problems)
    for flow in found.whole.enabled:
        try:
            callbacks(flow, "replicate")
        except AirmirrorError as error:
            line, key = line_of(found.whole, flow.name, KEY)
            problems.append(Problem(line, key, str(error)))
    return found.configuration, tuple(problems)


def _has_dags(configuration: Configuration) -> bool:
    return bool(configuration.enabled or heartbeat_flows(configuration) or configuration.comparisons)


def _dags(configuration: Configuration) -> Iterator[DAG]:
    flows = configuration.enabled
    for flow in flows:
        for make in (replicate_dag, audit_dag, replay_dag, decide_dag, report_dag):
            with suppress(AirmirrorError):  # it is among the problems
                yield make(flow)
    yield from map(compare_dag, configuration.comparisons.values())
    yield from _heartbeats(heartbeat_flows(configuration))
    if kept := [flow for flow in flows if flow.settings.retention_days]:
        yield maintenance_dag(kept)


def _heartbeats(flows: Iterable[Flow]) -> Iterator[DAG]:
    """A DAG for every cluster that heartbeats are written to."""
    ordered = sorted(flows, key=lambda flow: (flow.target.alias, flow.name))
    for target, emitting in groupby(ordered, key=lambda flow: flow.target.alias):
        yield heartbeats_dag(target, list(emitting))

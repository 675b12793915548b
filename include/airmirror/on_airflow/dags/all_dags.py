"""All DAGs of the configuration, and what is wrong with it.

A file with an import error has no DAGs in Airflow. So what is wrong with single flows is the import error of a second file
(``check_configuration``), and only what leaves no flow at all is that of the file with the DAGs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby

from airflow.sdk import DAG, get_parsing_context

from airmirror.config import Configuration, ConfigurationError, Flow, Problem
from airmirror.config.explain import problem_of
from airmirror.config.pairs import heartbeat_flows
from airmirror.errors import AirmirrorError
from airmirror.on_airflow.dags import heartbeats, maintenance
from airmirror.on_airflow.dags.audit import audit_dag
from airmirror.on_airflow.dags.common import id_of
from airmirror.on_airflow.dags.compare import compare_dag, compare_id
from airmirror.on_airflow.dags.decide import decide_dag
from airmirror.on_airflow.dags.notifications import KEY, callbacks
from airmirror.on_airflow.dags.operate import operate_dag
from airmirror.on_airflow.dags.rehearsal import rehearsal_dag, rehearsal_schedules
from airmirror.on_airflow.dags.replicate import replicate_dag
from airmirror.on_airflow.dags.schedules import TwoSchedules, union
from airmirror.on_airflow.deployment import check_ledger, deployment
from airmirror.topics.sound import sound

log = logging.getLogger(__name__)

OF_A_FLOW: dict[str, Callable[[Configuration, Flow], DAG]] = {
    "replicate": lambda _, flow: replicate_dag(flow),
    "decide": lambda _, flow: decide_dag(flow),
    "audit": lambda _, flow: audit_dag(flow),
    "operate": lambda configuration, flow: operate_dag(flow, has_reverse=configuration.has_reverse(flow)),
    "rehearse": lambda _, flow: rehearsal_dag(flow),
}


def dags() -> dict[str, DAG]:
    """Make every DAG of the flows that can run, by its id; log what is wrong with the others.

    A task, which is a process of its own and parses the file again, gets its own DAG alone: a hundred take half a second.
    Raises ConfigurationError where something is wrong and no flow can run, and LedgerNotShared.
    """
    check_ledger(deployment())
    configuration, problems = _read()
    if problems and not _has_dags(configuration):
        raise ConfigurationError(configuration.path, problems)
    for problem in problems:
        log.warning("%s: %s", configuration.path, problem)
    wanted, found = get_parsing_context().dag_id, {}
    for name, make in _makers(configuration):
        if wanted in (None, name):
            with suppress(AirmirrorError):  # it is among the problems
                found[name] = make()
    return found


def check_configuration() -> None:
    """Raise ConfigurationError with what is wrong with single flows; what leaves no flow is the error of ``dags``."""
    try:
        configuration, problems = _read()
    except ConfigurationError:
        return
    if problems and _has_dags(configuration):
        raise ConfigurationError(configuration.path, problems)


def _read() -> tuple[Configuration, tuple[Problem, ...]]:
    """The flows that can run, and everything that is wrong, with their DAGs too. Raises ConfigurationError."""
    found = sound(deployment().config)
    return found.configuration, (*found.problems, *unfit_for_dags(found.whole))


def unfit_for_dags(configuration: Configuration) -> Iterator[Problem]:
    """Yield what is wrong with enabled flows that only Airflow can say: their notifiers, and schedules that no DAG can have."""
    for flow in configuration.enabled:
        try:
            callbacks(flow, "replicate")
        except AirmirrorError as error:
            yield problem_of(configuration, flow.name, KEY, error)
        try:
            union(flow.name, rehearsal_schedules(flow))
        except TwoSchedules as error:
            yield problem_of(configuration, flow.name, next(iter(rehearsal_schedules(flow))), error)


def _has_dags(configuration: Configuration) -> bool:
    return bool(configuration.enabled or heartbeat_flows(configuration) or configuration.comparisons)


def _makers(configuration: Configuration) -> Iterator[tuple[str, Callable[[], DAG]]]:
    """Yield the id of each DAG, and what makes it."""
    flows = configuration.enabled
    for flow in flows:
        for kind in ("replicate", "decide", *flow.settings.dags):
            yield id_of(kind, flow), partial(OF_A_FLOW[kind], configuration, flow)
    for comparison in configuration.comparisons.values():
        yield compare_id(comparison), partial(compare_dag, comparison)
    # One for every cluster that heartbeats are written to.
    ordered = sorted(heartbeat_flows(configuration), key=lambda flow: (flow.target.alias, flow.name))
    for target, emitting in groupby(ordered, key=lambda flow: flow.target.alias):
        yield heartbeats.dag_id(target), partial(heartbeats.heartbeats_dag, target, list(emitting))
    if kept := [flow for flow in flows if flow.settings.retention_days]:
        yield maintenance.DAG_ID, partial(maintenance.maintenance_dag, kept)

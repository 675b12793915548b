"""The workers of Kafka Connect, as the coordinators of their groups know them: where they are, and which tasks they run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka.protocol.admin.groups import DescribeGroupsRequest

from airmirror.clusters.protocol.asking import ask_each, ask_node
from airmirror.clusters.protocol.connection import UnsupportedBroker
from airmirror.clusters.protocol.groups import DESCRIBE_GROUPS, GroupsNotRead, groups_at
from airmirror.clusters.protocol.producers import transactions_at
from airmirror.clusters.protocol.routes import Routes
from airmirror.wire.connect import Tasks, worker_tasks, worker_url
from airmirror.wire.primitives import MalformedRecord

CONNECT = "connect"  # the protocol type of workers' groups
OPEN = "Ongoing"


@dataclass(frozen=True)
class Worker:
    """A member of a group of Connect's workers. ``tasks``: by connector and number; None: it does not say."""

    group: str
    host: str
    url: str
    tasks: Tasks | None

    @property
    def where(self) -> str:
        """Return where it runs, for people."""
        return f"{self.host} ({self.url})" if self.url else self.host


def workers(routes: Routes) -> list[Worker]:
    """Every worker of Connect whose group is on this cluster. Raises GroupsNotRead, BrokerUnreachable."""
    return [worker for found in ask_each(routes, partial(_at, routes), GroupsNotRead) for worker in found]


def open_transactions(routes: Routes) -> list[str]:
    """The transactional ids with an open transaction; none where brokers are too old to say. Raises BrokerUnreachable."""
    return sorted(name for names in ask_each(routes, partial(_open_at, routes)) for name in names)


def _open_at(routes: Routes, node: int) -> list[str]:
    try:
        answer = transactions_at(routes, node, [OPEN])
    except UnsupportedBroker:
        return []
    return [each.transactional_id for each in answer.transaction_states]


def _at(routes: Routes, node: int) -> list[Worker]:
    names = [group.name for group in groups_at(routes, node) if group.protocol == CONNECT]
    if not names:
        return []
    request = DescribeGroupsRequest(groups=names, include_authorized_operations=False)
    [described] = ask_node(routes, node, [request], DESCRIBE_GROUPS)
    found = []
    for group in described.groups:
        if group.error_code:
            raise GroupsNotRead(routes.alias, group.group_id, group.error_code)
        found += [_worker(group.group_id, member) for member in group.members]
    return found


def _worker(group: str, member: Any) -> Worker:
    url, tasks = "", None
    try:  # in a group that is being balanced it is unknown
        url = worker_url(member.member_metadata)
        tasks = worker_tasks(member.member_metadata, member.member_assignment)
    except MalformedRecord:
        pass
    return Worker(group, member.client_host.removeprefix("/"), url, tasks)

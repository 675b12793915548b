"""The workers of Kafka Connect, as the coordinators of their groups know them: where they are, and which tasks they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin.groups import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.admin.transactions import ListTransactionsRequest

from airmirror.clusters.protocol.connection import BrokerUnreachable, UnsupportedBroker
from airmirror.clusters.protocol.groups import LIST_GROUPS, PATIENCE_SECONDS, GroupsNotRead
from airmirror.clusters.protocol.routes import Routes, patiently
from airmirror.wire.connect import Tasks, worker_tasks, worker_url
from airmirror.wire.primitives import MalformedRecord

DESCRIBE_GROUPS, LIST_TRANSACTIONS = 15, 66
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
    for attempt in patiently(PATIENCE_SECONDS, GroupsNotRead, BrokerUnreachable):
        with attempt:
            routes.refresh([])
            return [worker for node in routes.nodes for worker in _at(routes, node)]
    raise AssertionError("unreachable")  # pragma: no cover


def open_transactions(routes: Routes) -> list[str]:
    """The transactional ids with an open transaction; none where brokers are too old to say. Raises BrokerUnreachable."""
    found: list[str] = []
    for attempt in patiently(PATIENCE_SECONDS, BrokerUnreachable):
        with attempt:
            found.clear()
            routes.refresh([])
            for node in routes.nodes:
                try:
                    version = routes.connection(node).version(LIST_TRANSACTIONS, 0, 1, "ListTransactions")
                except UnsupportedBroker:
                    continue
                request = ListTransactionsRequest(state_filters=[OPEN], producer_id_filters=[], duration_filter=-1)
                answer = _ask(routes, node, request, version)
                found += [each.transactional_id for each in answer.transaction_states]
    return sorted(found)


def _at(routes: Routes, node: int) -> list[Worker]:
    connection = routes.connection(node)
    version = connection.version(LIST_GROUPS, 4, 5, "ListGroups")
    listed = _ask(routes, node, ListGroupsRequest(states_filter=[], types_filter=[]), version)
    if listed.error_code:
        raise GroupsNotRead(routes.alias, "", listed.error_code)
    names = [group.group_id for group in listed.groups if group.protocol_type == CONNECT]
    if not names:
        return []
    version = connection.version(DESCRIBE_GROUPS, 3, 5, "DescribeGroups")
    described = _ask(routes, node, DescribeGroupsRequest(groups=names, include_authorized_operations=False), version)
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


def _ask(routes: Routes, node: int, request: Any, version: int) -> Any:
    try:
        return routes.connection(node).request(request, version)
    except BrokerUnreachable:
        routes.drop(node)
        raise

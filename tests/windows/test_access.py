"""Access that is lost in mid-window: an error that says who denies what, and nothing lost once it is given back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror.clusters.admin import client as admin
from airmirror.clusters.admin.client import AccessDenied
from airmirror.clusters.protocol.errors import FetchFailed
from airmirror.clusters.protocol.groups import GroupsNotRead
from airmirror.clusters.protocol.routes import Routes, TopicNotDescribed
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.config import Cluster
from airmirror.flows.report import report_flow
from airmirror.flows.report_rows import Span
from airmirror.offsets.translation import Reason
from airmirror.slot.contract import Slot, SlotResult, transactional_id
from airmirror.slot.errors import AccessLost, PartitionFailed
from airmirror.windows.errors import HangingTransaction
from airmirror.windows.results import WindowResult
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support.acls import AUTHORIZER, denied
from support.faults import filled
from support.flows import Mirror, in_this_process, mirror
from support.groups import commit, committed
from support.hostile import numbered
from support.post_window import emit, sync
from support.topics import create_topic, open_transaction


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A cluster with ACLs; everybody is User:ANONYMOUS there."""
    broker = start_broker(tmp_path_factory.mktemp("guarded"), "guarded", IMPATIENT | AUTHORIZER)
    try:
        yield broker
    finally:
        broker.kill()


def run_denied(flow: Mirror, kind: ResourceType, name: str, operation: AclOperation, cluster: Broker) -> WindowResult:
    """A window from whose plan on the operation is denied."""

    def without(slots: Sequence[Slot]) -> list[SlotResult]:
        with denied(cluster, kind, name, operation):
            return in_this_process(slots)

    return flow.run(without)


def assert_continued(flow: Mirror) -> None:
    result = flow.run()
    assert result.is_verified and result.copied == 800
    assert flow.assert_equal() == 900


@pytest.mark.parametrize("operation", ["Read", pytest.param("Describe", marks=pytest.mark.long)])
def test_a_source_topic_that_may_not_be_read_any_more(
    guarded: Broker, west: Broker, tmp_path: Path, operation: str
) -> None:
    flow = filled(guarded, west, tmp_path)
    result = run_denied(flow, ResourceType.TOPIC, flow.topic, getattr(AclOperation, operation.upper()), guarded)
    errors = [row.error for row in result.rows]
    assert len(errors) == 2 and all(error is not None and not error.transient for error in errors)
    assert all(operation.upper() in str(error).upper() and repr(flow.topic) in str(error) for error in errors)
    if operation == "Read":
        assert all(isinstance(error, AccessLost) and error.denying == flow.flow.source.alias for error in errors)
    assert_continued(flow)


def test_a_source_topic_that_is_hidden_between_windows(guarded: Broker, west: Broker, tmp_path: Path) -> None:
    """A cluster does not list what this user may not describe: that must not look as if the topic were no longer there."""
    flow = filled(guarded, west, tmp_path)
    hidden = denied(guarded, ResourceType.TOPIC, flow.topic, AclOperation.DESCRIBE)
    with hidden, pytest.raises(TopicNotDescribed, match=flow.topic):
        flow.run()
    assert_continued(flow)


def test_a_remote_topic_that_may_not_be_written_any_more(east: Broker, guarded: Broker, tmp_path: Path) -> None:
    flow = filled(east, guarded, tmp_path)
    result = run_denied(flow, ResourceType.TOPIC, flow.remote_topic, AclOperation.WRITE, guarded)
    errors = [row.error for row in result.rows]
    assert len(errors) == 2 and all(isinstance(error, AccessLost) for error in errors)
    assert all("'west' does not let this user write" in str(error) for error in errors)
    assert_continued(flow)


def test_a_remote_topic_that_may_not_be_read(east: Broker, guarded: Broker, tmp_path: Path) -> None:
    """MirrorMaker 2 needs no Read there; nothing differs, and the error says what is missing."""
    flow = filled(east, guarded, tmp_path)
    result = run_denied(flow, ResourceType.TOPIC, flow.remote_topic, AclOperation.READ, guarded)
    errors = [row.error for row in result.rows]
    assert len(errors) == 2 and all(isinstance(error, AccessLost) and not error.transient for error in errors)
    assert all(
        "'west' does not let this user read" in str(error) and "operation Read" in str(error) for error in errors
    )
    assert_continued(flow)


def test_a_topic_whose_configuration_may_not_be_read(guarded: Broker, topic: Callable[[str], str]) -> None:
    name = create_topic(guarded, topic("orders"))
    cluster = Cluster("east", (guarded.bootstrap,), {})
    with denied(guarded, ResourceType.TOPIC, name, AclOperation.DESCRIBE_CONFIGS):
        with pytest.raises(AccessDenied, match=f"needs DescribeConfigs on topic '{name}'"):
            admin.topic_configs(cluster, [name])
        with Routes(cluster, "test") as routes, pytest.raises(FetchFailed, match=f"{name}.*needs DescribeConfigs"):
            routes.refresh([name])
            topic_configs(routes, [name], ["cleanup.policy"])


def test_transactional_ids_that_may_not_be_used_any_more(east: Broker, guarded: Broker, tmp_path: Path) -> None:
    flow = filled(east, guarded, tmp_path)
    name = transactional_id(flow.flow, 0)
    result = run_denied(flow, ResourceType.TRANSACTIONAL_ID, name, AclOperation.WRITE, guarded)
    [error] = [row.error for row in result.rows if row.error is not None]
    assert isinstance(error, PartitionFailed) and "prefix" in str(error)
    flow.run()
    assert flow.assert_equal() == 900


def test_a_transaction_that_this_user_may_not_see_is_not_called_hanging(
    guarded: Broker, west: Broker, tmp_path: Path
) -> None:
    """Coordinators leave out of their answers what may not be described; what would destroy its records is not proposed."""
    flow = mirror(guarded, west, tmp_path)
    with open_transaction(guarded, flow.topic, numbered(3), partition=0):
        assert flow.run().is_verified, "a coordinator knows it"
        with denied(guarded, ResourceType.TRANSACTIONAL_ID, "*", AclOperation.DESCRIBE):
            [row] = flow.run().rows
    assert isinstance(row.error, HangingTransaction)
    assert "(Describe on transactional ids)" in str(row.error) and "find-hanging" in str(row.error)
    assert "abort" not in str(row.error)


@pytest.mark.parametrize("what", ["leases", pytest.param("progress", marks=pytest.mark.long)])
def test_internal_topics_that_may_not_be_written_any_more(
    east: Broker, guarded: Broker, tmp_path: Path, what: str
) -> None:
    from airmirror.windows.index import InternalTopics

    flow = filled(east, guarded, tmp_path)
    topics = InternalTopics.of(flow.flow.source.alias)
    if what == "leases":
        without = denied(guarded, ResourceType.TOPIC, topics.mappings, AclOperation.WRITE)
        with without, pytest.raises(AccessDenied, match=topics.mappings):
            flow.run()
    else:
        result = run_denied(flow, ResourceType.TOPIC, topics.progress, AclOperation.WRITE, guarded)
        errors = [row.error for row in result.rows]
        assert all(isinstance(error, PartitionFailed) and topics.progress in str(error) for error in errors)
    assert_continued(flow)


def test_the_checkpoints_topic_and_a_group_that_may_not_be_used_any_more(
    east: Broker, guarded: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    """The tasks for groups fail, or tell why a group was not moved; the data keeps flowing."""
    flow, group = filled(east, guarded, tmp_path), topic("billing")
    commit(east, group, {(flow.topic, 0): 10})
    assert emit(flow, group) == 1
    commit(east, group, {(flow.topic, 0): 20})
    checkpoints = f"{flow.flow.source.alias}.checkpoints.internal"
    with denied(guarded, ResourceType.TOPIC, checkpoints, AclOperation.READ):
        with pytest.raises(FetchFailed, match=checkpoints):
            emit(flow, group)
        assert_continued(flow)
        with denied(guarded, ResourceType.GROUP, group, AclOperation.READ):
            assert [row.reason for row in sync(flow.opened, group)] == [
                f"{Reason.REFUSED}: GROUP_AUTHORIZATION_FAILED (30)"
            ]
        assert [row.reason for row in sync(flow.opened, group)] == [""]
        assert committed(guarded, group) == {(flow.remote_topic, 0): 20}
    with (
        denied(guarded, ResourceType.TOPIC, checkpoints, AclOperation.DESCRIBE),
        pytest.raises(TopicNotDescribed, match=checkpoints),
    ):
        emit(flow, group)
    assert emit(flow, group) == 1
    with (
        denied(guarded, ResourceType.GROUP, group, AclOperation.DESCRIBE),
        pytest.raises(GroupsNotRead, match=group) as told,
    ):
        sync(flow.opened, group)
    assert not told.value.transient and "groups.exclude" in str(told.value)


def test_a_report_tells_what_the_source_does_not_show_any_more(guarded: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(guarded, west, tmp_path)
    with denied(guarded, ResourceType.TOPIC, flow.topic, AclOperation.DESCRIBE):
        made = report_flow(flow.opened, Span())
    assert made.numbers["records copied"] == 100 and "offsets left to copy now" not in made.numbers
    (line,) = (line for line in made.not_known if "Where a log ends now" in line)
    assert "does not let this user describe" in line and flow.topic in line


@pytest.mark.parametrize("operation", [AclOperation.READ, pytest.param(AclOperation.DESCRIBE, marks=pytest.mark.long)])
def test_a_comparison_names_the_permission_that_it_lacks(
    east: Broker, guarded: Broker, tmp_path: Path, operation: AclOperation
) -> None:
    flow = filled(east, guarded, tmp_path)
    where = ["--source", east.bootstrap, "--target", guarded.bootstrap, "--topics", flow.topic]
    words = ["compare", *where, "--rename", flow.remote_topic.replace(flow.topic, "{topic}")]
    with denied(guarded, ResourceType.TOPIC, flow.remote_topic, operation):
        answer = CliRunner().invoke(app, words)
    said = " ".join(answer.output.split())
    # A topic that is not shown is a row of its own that could not be compared; the others are compared.
    assert answer.exit_code == (2 if operation is AclOperation.READ else 1) and "'target'" in said, said
    assert flow.remote_topic in said and operation.name.lower() in said.lower(), said

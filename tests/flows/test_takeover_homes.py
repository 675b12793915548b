"""MirrorMaker 2 in its homes: exactly once on Connect, as Strimzi's operator runs it, both directions, beside a shadow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror.config import load
from airmirror.flows.prepare import Opened
from airmirror.ledger import Ledger
from airmirror.runbooks.takeover.copies import await_stopped, take_over_copies
from airmirror.runbooks.takeover.handback import positions, rest_body, write_offsets
from airmirror.runbooks.takeover.order import HandbackOrder
from airmirror.runbooks.takeover.plan import takeover_plan
from airmirror.topics.names import select
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from airmirror_local.mirrormaker import start_mirrormaker
from airmirror_local.processes import Process
from flows.test_takeover_mirrormaker import (
    SECONDS,
    assert_complete,
    assert_resumes,
    await_more,
    contents,
    producing,
    taken_over,
)
from support.flows import Mirror, mirror
from support.mirrormaker import asked, await_records, await_state, connect_worker, connected, dedicated, numbered
from support.topics import create_topic, end_offsets, produce, read_all

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.mark.parametrize("by", ["REST", "topic"])
def test_a_connector_that_is_exactly_once_with_offsets_of_its_own(
    east: Broker, west: Broker, tmp_path: Path, by: str
) -> None:
    """Its worker is killed in a transaction; handed back, it resumes after what Airmirror has copied, and nothing is twice."""
    with connected(east, west, tmp_path, exactly_once=True) as connector:
        flow = connector.flow(tmp_path)
        name = flow.flow.settings.takeover_connector_name
        assert flow.flow.settings.takeover_offsets_topics == (connector.offsets,), (
            "it is in the connector's configuration"
        )
        with producing(flow, 2):
            await_more(flow, 200, connector.worker)
            asked(f"{connector.url}/stop", "PUT", {})
            await_state(connector, "STOPPED")
            assert [row.again for row in taken_over(flow)] == [0, 0]
            if by == "REST":
                asked(f"{connector.url}/offsets", "PATCH", rest_body(flow.opened, positions(flow.opened)))
            else:
                _, tasks = write_offsets(flow.opened, HandbackOrder(into=connector.offsets, connector=name))
                assert not [each.error for each in tasks if each.error]
            asked(f"{connector.url}/resume", "PUT", {})
            assert_resumes(flow)
            await_more(flow, 200, connector.worker)
            records = sum(map(len, read_all(west, flow.remote_topic, settled=False).values()))
            assert records < sum(end_offsets(west, flow.remote_topic).values()), "its transactions have markers"
            connector.worker.kill()
            assert [row.again for row in taken_over(flow)] == [0, 0]
        assert flow.run().is_verified
    assert_complete(flow, 0)


RESOURCE = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata:
  name: mirror
spec:
  replicas: 1
  target:
    alias: west
    bootstrapServers: {west}
    groupId: {alias}-group
    configStorageTopic: {alias}-config
    offsetStorageTopic: {alias}-offsets
    statusStorageTopic: {alias}-status
    config:
      config.storage.replication.factor: 1
      offset.storage.replication.factor: 1
      status.storage.replication.factor: 1
  mirrors:
    - source:
        alias: {alias}
        bootstrapServers: {east}
      sourceConnector:
        tasksMax: 2
        config:
          replication.factor: 1
          offset-syncs.topic.replication.factor: 1
          sync.topic.configs.enabled: "false"
          sync.topic.acls.enabled: "false"
          refresh.topics.interval.seconds: 5
      checkpointConnector:
        tasksMax: 1
        config:
          checkpoints.topic.replication.factor: 1
      topicsPattern: {topic}
      groupsPattern: .*
"""


def as_the_operator(alias: str, east: Broker, west: Broker, kind: str, **config: object) -> dict[str, object]:
    """The configuration of a connector that Strimzi's operator makes of the resource."""
    clusters = {
        f"{side}.cluster.{key}": value
        for side, name, broker in (("source", alias, east), ("target", "west", west))
        for key, value in (
            ("alias", name),
            ("bootstrap.servers", broker.bootstrap),
            ("security.protocol", "PLAINTEXT"),
        )
    }
    own = {key.replace("__", "."): value for key, value in config.items()}
    return {"connector.class": f"org.apache.kafka.connect.mirror.{kind}", **clusters, **own}


def test_what_strimzi_runs_without_kubernetes(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Airmirror reads the resource; a Connect worker has its group and topics, connectors the operator's names and settings."""
    alias = f"s{uuid4().hex[:8]}"
    topic = create_topic(east, f"orders-{alias}", 2)
    file = tmp_path / "mirror.yaml"
    file.write_text(RESOURCE.format(alias=alias, topic=topic, east=east.bootstrap, west=west.bootstrap))
    configuration = load(file)
    found = configuration.flow(f"{alias}->west")
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db").flow(found.name)
    flow = Mirror(east, west, topic, Opened(configuration, found, ledger))
    worker = {f"{what}.storage.topic": f"{alias}-{what}" for what in ("config", "status")}
    worker |= {"offset.storage.topic": f"{alias}-offsets", "group.id": f"{alias}-group"}
    connectors: Mapping[str, Mapping[str, object]] = {
        "MirrorSourceConnector": {
            "tasks__max": 2,
            "topics": topic,
            "replication__factor": 1,
            "offset-syncs__topic__replication__factor": 1,
            "sync__topic__configs__enabled": "false",
            "sync__topic__acls__enabled": "false",
            "refresh__topics__interval__seconds": 5,
        },
        "MirrorCheckpointConnector": {"tasks__max": 1, "groups": ".*", "checkpoints__topic__replication__factor": 1},
    }
    with connect_worker(west, tmp_path, worker) as (process, address, _):
        urls = {kind: f"{address}/connectors/{quote(f'{alias}->west.{kind}')}" for kind in connectors}
        for kind, its in connectors.items():
            asked(f"{urls[kind]}/config", "PUT", as_the_operator(alias, east, west, kind, **its))
        with producing(flow, 2):
            await_records(west, flow.remote_topic, 200, process)
            await_records(west, f"{alias}-offsets", 2, process)
            plan = takeover_plan(flow.opened)
            assert plan.progress_in == (f"{alias}-offsets",) and plan.progress_ms is not None
            assert any(f"connector '{alias}->west.MirrorSourceConnector'" in each for each in plan.running), (
                plan.running
            )
            for url in urls.values():  # state: stopped
                asked(f"{url}/stop", "PUT", {})
            again = sum(row.again for row in taken_over(flow))
            body = json.loads(json.dumps(rest_body(flow.opened, positions(flow.opened))))  # of the ConfigMap
            asked(f"{urls['MirrorSourceConnector']}/offsets", "PATCH", body)
            for url in urls.values():  # state: running
                asked(f"{url}/resume", "PUT", {})
            assert_resumes(flow)
            process.kill()
            again += sum(row.again for row in taken_over(flow))
        assert flow.run().is_verified
    assert_complete(flow, again)


BOTH = """\
clusters = {one}, {other}
{one}.bootstrap.servers = {east}
{other}.bootstrap.servers = {west}
{one}->{other}.enabled = true
{one}->{other}.topics = orders-{one}
{other}->{one}.enabled = true
{other}->{one}.topics = payments-{one}
emit.heartbeats.enabled = false
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
refresh.topics.interval.seconds = 5
{one}.offset.flush.interval.ms = 500
{other}.offset.flush.interval.ms = 500
"""
POLICIES = {
    "default": "",
    "separator": "replication.policy.separator = _\n",
    "identity": "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n",
}
REMOTE = {"default": "{}.{}", "separator": "{}_{}", "identity": "{1}"}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Broker, Broker]]:
    """Two clusters that nobody else calls by other names: flows in both directions would be taken for a loop."""
    started: list[Broker] = []
    try:
        for name in ("one", "other"):
            started.append(start_broker(tmp_path, name, IMPATIENT))
        yield started[0], started[1]
    finally:
        for broker in started:
            broker.kill()


@pytest.mark.parametrize("policy", POLICIES)
def test_both_directions_of_one_process_by_its_own_file(
    both: tuple[Broker, Broker], tmp_path: Path, policy: str
) -> None:
    """Transactions, aborted ones too; killed, both taken over, handed back, and taken over again, from the one file."""
    (one, other), (east, west) = ("a", "b"), both
    topics = {(one, other): f"orders-{one}", (other, one): f"payments-{one}"}
    for cluster, topic in ((east, f"orders-{one}"), (west, f"payments-{one}")):
        create_topic(cluster, topic)
        produce(cluster, topic, numbered(200))
        produce(cluster, topic, numbered(20, 9_000), transactional="abort")
        produce(cluster, topic, numbered(100, 200), transactional="commit")
    file = tmp_path / "mm2.properties"
    text = BOTH.format(one=one, other=other, east=east.bootstrap, west=west.bootstrap) + POLICIES[policy]
    file.write_text(text)
    configuration = load(file)
    flows = []
    for (source, target), topic in topics.items():
        its = configuration.flow(f"{source}->{target}")
        remote = REMOTE[policy].format(source, topic)
        assert select(its, [topic]) == {topic: remote}
        opened = Opened(configuration, its, Ledger(f"sqlite:///{tmp_path}/{source}.db").flow(its.name))
        clusters = (east, west) if source == one else (west, east)
        flows.append((Mirror(*clusters, topic, opened), remote))

    def copied(process: Process, count: int) -> None:
        for flow, remote in flows:
            await_records(flow.target, remote, count, process)  # type: ignore[arg-type]

    def taken() -> None:
        for flow, _ in flows:
            await_stopped(flow.opened, SECONDS)
            rows = take_over_copies(flow.opened, "me", f"takeover-{uuid4().hex[:6]}")
            assert not [str(row.error) for row in rows if row.error] and flow.run().is_verified

    process = start_mirrormaker(file, tmp_path)
    try:
        copied(process, 320)  # by default it copies what was aborted too
        process.kill()
        taken()
        for flow, _ in flows:
            produce(flow.source, flow.topic, numbered(50, 300))
        process = start_mirrormaker(file, tmp_path)
        for flow, _ in flows:
            assert_resumes(flow)
        copied(process, 370)
    finally:
        process.kill()
    taken()
    for flow, remote in flows:
        produce(flow.source, flow.topic, numbered(50, 350))
        assert flow.run().is_verified
        source, target = read_all(flow.source, flow.topic)[0], read_all(flow.target, remote)[0]
        aborted = {each.content for each in numbered(20, 9_000)}
        assert list(dict.fromkeys(each for each in contents(target) if each not in aborted)) == contents(source)


def test_a_shadow_next_to_a_running_mirrormaker_2(east: Broker, west: Broker, tmp_path: Path) -> None:
    """It copies into topics of its own while MirrorMaker 2 runs; both copies are compared; MirrorMaker 2 is taken over then."""
    flow = mirror(east, west, tmp_path, partitions=2)
    shadow = mirror(
        east, west, tmp_path, partitions=2, topic=flow.topic, settings={"sync.group.offsets.enabled": "false"}
    )
    with dedicated(flow, tmp_path) as process:
        with producing(flow, 2):
            await_records(west, flow.remote_topic, 200, process)
            for _ in range(3):
                assert shadow.run().is_verified
            await_more(flow, 200, process)
        assert shadow.run().is_verified
        count = shadow.assert_equal()
        await_records(west, flow.remote_topic, count, process)
        assert process.running and takeover_plan(flow.opened).running
        name = flow.flow.source.alias
        both, rename = west.bootstrap, f"{shadow.flow.source.alias}.{{topic#{name}.}}"
        asks = ["compare", "--source", both, "--target", both, "--topics", flow.remote_topic, "--rename", rename]
        said = CliRunner().invoke(app, [*asks, "--json"])
        compared = json.loads(said.stdout)
        assert said.exit_code == 0 and compared["is_equal"] and len(compared["partitions"]) == 2, said.output
        process.stop(60)
    assert [row.again for row in taken_over(flow)] == [0, 0]
    produce(east, flow.topic, numbered(100, 50_000_000))
    assert flow.run().is_verified
    assert_complete(flow, 0)

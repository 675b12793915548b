"""Scenarios of Cluster Mirroring (KIP-1279): a flow whose configuration and filter change, and one that stops at any moment."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from airmirror.config.errors import ConfigurationError
from airmirror.runbooks.failback.plan import failback_plan
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Proxy
from support.failovers import DISASTER, at, fail_over, windowed, with_groups, without_source
from support.flows import mirror
from support.following import numbered
from support.topics import (
    Record,
    assert_mirrored,
    create_topic,
    end_offsets,
    open_transaction,
    produce,
    read_all,
    topics_of,
)
from support.topologies import deploy, fresh_records

FETCH = 1

pytestmark = pytest.mark.long


def values(records: list[Record]) -> list[bytes | None]:
    return [each.value for each in records]


def test_a_configuration_is_changed_while_its_flow_has_work(
    east: Broker, west: Broker, east_proxy: Proxy, tmp_path: Path
) -> None:
    """Scenario: a key that there is not is refused, and another address of the source counts from the next window on."""
    alias = f"s{uuid4().hex[:8]}"
    flow, topic = f"{alias}->west", create_topic(east, f"orders-{alias}")
    deployment = deploy(tmp_path, {alias: east, "west": west}, {flow: topic})
    produce(east, topic, fresh_records("one", 3))
    assert deployment.window(flow).result.is_verified
    produce(east, topic, fresh_records("two", 3))
    deploy(tmp_path, {alias: east, "west": west}, {flow: topic}, f"{flow}.topcis = {topic}")
    with pytest.raises(ConfigurationError, match=f"{flow}.topcis"):
        deployment.window(flow)
    assert len(read_all(west, f"{alias}.{topic}")[0]) == 3
    deploy(tmp_path, {alias: east_proxy.bootstrap, "west": west}, {flow: topic})
    result = deployment.window(flow).result
    assert result.is_verified and result.copied == 3 and east_proxy.requests[FETCH]
    assert assert_mirrored(east, topic, west, f"{alias}.{topic}") == 6


def test_topics_are_filtered_and_found(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Scenario: of two patterns one includes and one excludes; a topic is taken out, one is created, one is added."""
    mark = uuid4().hex[:8]
    alias = f"s{mark}"
    flow, orders = f"{alias}->west", f"{mark}-orders-.*"
    us, eu, jp, internal = (f"{mark}-orders-{name}" for name in ("us", "eu", "jp", "internal"))
    payments = f"{mark}-payments"

    def more(topic: str, count: int = 3) -> None:
        produce(east, topic, fresh_records(f"{topic}-{uuid4().hex[:4]}", count))

    def window(included: str, excluded: str) -> dict[str, int]:
        """How many records of each topic are on the target after a window."""
        lines = f"{flow}.topics.exclude = {excluded}"
        deployment = deploy(tmp_path, {alias: east, "west": west}, {flow: included}, lines)
        assert deployment.window(flow).result.is_verified
        mine = {name.removeprefix(f"{alias}."): name for name in topics_of(west) if name.startswith(f"{alias}.{mark}")}
        return {topic: len(read_all(west, remote)[0]) for topic, remote in mine.items()}

    for topic in (us, eu, internal, payments):
        create_topic(east, topic)
        more(topic)
    assert window(orders, internal) == {us: 3, eu: 3}
    for topic in (us, eu, internal, payments):
        more(topic)
    assert window(orders, f"{internal}, {eu}") == {us: 6, eu: 3}
    create_topic(east, jp)
    more(jp, 2)
    assert window(orders, f"{internal}, {eu}") == {us: 6, eu: 3, jp: 2}, "what was taken out is not found again"
    assert window(f"{orders}, {payments}", internal) == {us: 6, eu: 6, jp: 2, payments: 6}
    for topic in (us, eu, jp, payments):
        assert_mirrored(east, topic, west, f"{alias}.{topic}")


def test_a_stop_while_transactions_are_open(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Scenario: two transactions are open, one was committed and one aborted when the flow stops, between plain records.

    Nothing of what is open has come to the target: no marker ends it there, and whoever reads what is committed is not kept
    back. What is committed later is named.
    """
    flow = with_groups(mirror(east, west, tmp_path), "none")
    produce(east, flow.topic, numbered(2), partition=0, transactional="commit")
    produce(east, flow.topic, numbered(1, 2), partition=0)
    with (
        open_transaction(east, flow.topic, numbered(2, 10), partition=0) as producer,
        open_transaction(east, flow.topic, numbered(2, 20), partition=0),
    ):
        produce(east, flow.topic, numbered(2, 30), partition=0, transactional="abort")
        produce(east, flow.topic, numbered(2, 3), partition=0)
        windowed(flow)
        fail_over(without_source(flow.opened), DISASTER)
        copies = read_all(west, flow.remote_topic)[0]
        assert values(copies) == [b"v0", b"v1", b"v2"]
        ends = [end_offsets(west, flow.remote_topic, level) for level in ("read_uncommitted", "read_committed")]
        assert ends[0] == ends[1] == {0: len(copies) + 1}, "the marker of the flow's own transaction and no other"
        produce(west, flow.remote_topic, numbered(2, 100), partition=0, transactional="commit")
        assert values(read_all(west, flow.remote_topic)[0])[3:] == [b"v100", b"v101"]
        (row,) = failback_plan(flow.opened).partitions
        assert (row.never.records, row.since.records) == (0, 2) and 0 <= row.open_from == row.end
        producer.commit_transaction(60)
    there = read_all(east, flow.topic)
    (row,) = failback_plan(flow.opened).partitions
    assert row.open_from == -1 and at(there, 0, row.never.runs) == [b"v10", b"v11", b"v3", b"v4"]

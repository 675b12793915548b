"""The return to MirrorMaker 2: only what is verified, where its connector finds it."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from airmirror.clusters.protocol.routes import Routes
from airmirror.flows.holds import add_holds
from airmirror.flows.prepare import prepare
from airmirror.runbooks.takeover.handback import CopiedPosition, HandbackRefused, positions, rest_body, write_offsets
from airmirror.runbooks.takeover.order import HandbackOrder
from airmirror.windows.connect_offsets import OffsetsTopicMissing, read_progress
from airmirror.windows.window import WindowOrder, run_window, verify_window
from airmirror.wire.mirrormaker import source_offset_key
from airmirror_local.brokers import Broker
from support.flows import Mirror, in_this_process, mirror
from support.topics import Record, create_topic, produce, read_all

NAME = "our mirror"


def copied(east: Broker, west: Broker, directory: Path) -> Mirror:
    """A flow of three partitions, of which two have records."""
    flow = mirror(east, west, directory, partitions=3, settings={"takeover.connector.name": NAME})
    produce(east, flow.topic, [Record(b"%d" % n) for n in range(10)], partition=0)
    produce(east, flow.topic, [Record(b"%d" % n) for n in range(20)], partition=2)
    assert flow.run().is_verified
    return flow


def test_its_workers_topic_holds_what_was_copied_last(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, topic = copied(east, west, tmp_path), create_topic(west, f"connect-offsets-{uuid4()}", 5)
    found = [CopiedPosition(flow.topic, 0, 9), CopiedPosition(flow.topic, 2, 19)]
    assert positions(flow.opened) == found
    written, tasks = write_offsets(flow.opened, HandbackOrder(into=topic))
    assert written == found and not [each.error for each in tasks if each.error]
    with Routes(flow.flow.target, "test") as target:
        target.refresh([topic])
        kept = read_progress(target, flow.flow, topic, NAME)
        assert {key: each.offset for key, each in kept.items()} == {(flow.topic, 0): 9, (flow.topic, 2): 19}
    keys = {record.key for records in read_all(west, topic).values() for record in records}
    assert keys == {source_offset_key(flow.flow.source.alias, flow.topic, number, NAME) for number in (0, 2)}
    partition = {"cluster": flow.flow.source.alias, "partition": 2, "topic": flow.topic}
    body = json.loads(json.dumps(rest_body(flow.opened, found)))
    assert body["offsets"][1] == {"partition": partition, "offset": {"offset": 19}}
    with pytest.raises(OffsetsTopicMissing):
        write_offsets(flow.opened, HandbackOrder(into="no-such-topic"))
    assert flow.run().is_verified, "the lease is released"


def test_what_is_held_or_not_verified_is_not_handed_back(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, topic = copied(east, west, tmp_path), create_topic(west, f"connect-offsets-{uuid4()}", 1)
    add_holds(flow.opened, flow.topic, [2], reason="somebody looks at it", by="me")
    with pytest.raises(HandbackRefused, match=r"not verified up to the last record in 1 partition; ") as caught:
        write_offsets(flow.opened, HandbackOrder(into=topic))
    assert caught.value.reasons == (f"{flow.topic}-2: held: somebody looks at it",)
    assert read_all(west, topic) == {0: []}


def test_what_no_gate_has_judged_is_not_handed_back(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = copied(east, west, tmp_path)
    produce(east, flow.topic, [Record(b"more")], partition=0)
    prepared = prepare(flow.opened)
    ledger = flow.opened.ledger
    run_window(flow.flow, ledger, prepared.topics, in_this_process, WindowOrder("w", slots=lambda _: 1, advance=False))
    with pytest.raises(HandbackRefused) as caught:
        positions(flow.opened)
    assert caught.value.reasons == (f"{flow.topic}-0: offsets 10 to 10 are not verified",)
    verify_window(flow.flow, ledger, None, window="gate", trusted={"w"})
    assert positions(flow.opened)[0].offset == 10

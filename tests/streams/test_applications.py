"""A Kafka Streams application after a planned failover: its state is that of a run that was never interrupted."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from uuid import uuid4

import pytest

from airmirror.clusters.protocol.groups import list_every_group
from airmirror.clusters.protocol.routes import Routes
from airmirror.runbooks.failover.plan import failover_plan
from airmirror.runbooks.failover.shown import outcome_of
from airmirror_local.brokers import Broker
from support.failovers import PLANNED, fail_over, windowed, with_groups
from support.flows import Mirror, at_once, mirror
from support.streams import compiled, word_count
from support.topics import Cluster, Record, admin, create_topic, produce, read_all, start_offsets

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]
CHANCE = random.Random(21)
PARTS = [[" ".join(CHANCE.choices("abcdefghij", k=6)) for _ in range(count)] for count in (400, 300, 300)]


def counted(*parts: list[str]) -> Counter[str]:
    return Counter(word for part in parts for line in part for word in line.split())


def write(cluster: Cluster, topic: str, part: list[str]) -> None:
    produce(cluster, topic, [Record(line.encode(), b"%d" % number) for number, line in enumerate(part)])


def internal_topics(cluster: Cluster, application: str) -> list[str]:
    return sorted(name for name in admin(cluster).list_topics(timeout=60).topics if name.startswith(f"{application}-"))


def kinds_of(flow: Mirror, group: str) -> list[str]:
    """The kinds of a group on the source and on the target; "": it is not there."""
    found = []
    for cluster in (flow.flow.source, flow.flow.target):
        with Routes(cluster, "test") as routes:
            found.append(next((each.kind for each in list_every_group(routes) if each.name == group), ""))
    return found


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_its_state_on_the_target_equals_that_of_a_run_without_failover(
    east: Broker, west: Broker, tmp_path: Path, protocol: str
) -> None:
    """It is stopped in the middle, with records of its input still to be handled. While it ran, Streams deleted what was
    handled, copied or not. A streams group begins on the target at positions that were written before it came there.
    """
    path = compiled(tmp_path)
    name = uuid4().hex[:8]
    application, alone = f"app.{name}", f"alone.{name}"
    lines, counts, other = (create_topic(east, f"{what}-{name}", 2) for what in ("lines", "counts", "other"))
    settings = {
        "replication.policy.class": "IdentityReplicationPolicy",
        "topics": f"{lines}, {counts}",
        "streams.applications": application,
        "streams.groups.ahead.allowed": "true",
    }
    flow = with_groups(mirror(east, west, tmp_path, topic=lines, settings=settings), application)
    write(east, lines, PARTS[0])
    with word_count(path, east, application, tmp_path / "east", (lines, counts), protocol) as app:
        app.await_words(1)
        flow.run(at_once)
        app.await_words(counted(PARTS[0]).total())
        flow.run(at_once)
        write(east, lines, PARTS[1][:150])
        app.await_words(counted(PARTS[0]).total() + 1)
    write(east, lines, PARTS[1][150:])
    internal = internal_topics(east, application)
    assert [each.rsplit("-", 1)[1] for each in internal] == ["changelog", "repartition"]
    assert max(start_offsets(east, internal[1]).values()) > 0, "Streams has deleted what was handled"
    assert kinds_of(flow, application)[0] == protocol
    windowed(flow)
    found = {each.what: each for each in failover_plan(flow.opened).findings}
    assert found[f"Streams application {application} finds its state"].level == "ok"
    made = outcome_of(flow.opened, PLANNED, *fail_over(flow.opened, PLANNED))
    assert made.is_good and internal_topics(west, application) == internal, made
    assert {name: len(groups) for name, groups in made.plan.kinds.items()} == {protocol: 1}
    copied_as_it_is(flow, internal[0])
    write(west, lines, PARTS[2])
    everything = counted(*PARTS)
    with word_count(path, west, application, tmp_path / "west", (lines, counts), protocol) as app:
        state = app.await_words(everything.total())
    assert kinds_of(flow, application) == [protocol, protocol]
    for part in PARTS:
        write(east, other, part)
    with word_count(path, east, alone, tmp_path / "alone", (other, create_topic(east, f"out-{name}", 2))) as app:
        reference = app.await_words(everything.total())
    assert state == reference == everything, "nothing was lost, nothing counted twice"
    last: dict[bytes | None, int] = {}
    for its in read_all(west, counts).values():
        for each in its:
            assert int.from_bytes(each.value or b"") > last.get(each.key, 0), "each count once, and in order"
            last[each.key] = int.from_bytes(each.value or b"")
    assert {(key or b"").decode(): count for key, count in last.items()} == everything


def copied_as_it_is(flow: Mirror, topic: str) -> None:
    there = {number: [each.content for each in its] for number, its in read_all(flow.target, topic).items()}
    assert there == {number: [each.content for each in its] for number, its in read_all(flow.source, topic).items()}

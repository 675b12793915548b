"""Changes while a flow runs: in its file, and behind its back on either cluster, with every choice carried out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from airmirror.cli.main import app
from airmirror.flows.freezing import freeze, unfreeze
from airmirror.flows.prepare import plan_topics
from airmirror.flows.reset import ResetOrder, carry_out, consider
from airmirror.flows.verification import compare_all
from airmirror.offsets.syncs import emit_offset_syncs
from airmirror.windows.resets import Choice, ResetNotPossible
from airmirror.wire.mirrormaker import OffsetSync
from support.topics import (
    Record,
    admin,
    assert_mirrored,
    await_settled,
    create_topic,
    delete_topic,
    produce,
    read_all,
    topics_of,
)
from support.topologies import Clusters, Deployment, Window, deploy, fresh_records, internal_topics

SYNCS = "mm2-offset-syncs.B.internal"


def errors(window: Window) -> set[str]:
    return {type(row.error).__name__ for row in window.result.rows if row.error}


def reset(deployment: Deployment, choice: Choice, *, recreate: bool = False) -> list[tuple[int, int, int]]:
    """Look at what would be done, do it, and return (partition, start, lost) of each; both agree."""
    order = ResetOrder(
        topics=("orders",), partitions=(), choice=choice, recreate=recreate, by="somebody@somewhere", reason="a test"
    )
    with deployment.opened("A->B") as opened:
        shown = consider(opened, order)
        assert [decision.reason for decision in opened.ledger.resets()] == []
        done = carry_out(opened, order)
        found = opened.ledger.resets()
        assert [(each.by, each.reason, each.choice) for each in found] == [
            ("somebody@somewhere", "a test", choice) for _ in done
        ]
        rebuilt = opened.ledger.contents()
        opened.ledger.forget()
        from airmirror.flows.prepare import catch_up_ledger

        catch_up_ledger(opened)
        assert opened.ledger.contents() == rebuilt
    assert [(r.facts.partition, r.start, r.lost) for r in shown] == [(r.facts.partition, r.start, r.lost) for r in done]
    return [(each.facts.partition, each.start, each.lost) for each in done]


def verified(deployment: Deployment) -> int:
    """Both logs are read again and compared: how many records are equal."""
    with deployment.opened("A->B") as opened:
        rows = compare_all(opened, [])
    assert not [row.error for row in rows if row.error]
    return sum(row.records for row in rows)


def emit_syncs(deployment: Deployment) -> None:
    with deployment.opened("A->B") as opened:
        emit_offset_syncs(opened.flow, opened.ledger, window="syncs")


def values(records: Sequence[Record]) -> list[bytes | None]:
    return [record.value for record in records]


@pytest.fixture
def running(clusters: Clusters, tmp_path: Path) -> Deployment:
    """A flow A->B of one topic, 20 records of which are replicated."""
    deployment = deploy(tmp_path, clusters.by_alias, {"A->B": "orders"})
    create_topic(clusters.a, "orders")
    produce(clusters.a, "orders", fresh_records("one", 20))
    assert deployment.window("A->B").result.copied == 20
    return deployment


def more(clusters: Clusters, mark: str = "two", count: int = 10) -> None:
    produce(clusters.a, "orders", fresh_records(mark, count))


@pytest.mark.long  # each window loads the file (config/), and chooses topics by it (topics/)
def test_a_changed_file_counts_in_the_next_window(clusters: Clusters, tmp_path: Path) -> None:
    """Also: a topic taken out stops at once and keeps its progress; a flow taken out leaves its topics."""
    for topic in ("orders", "payments"):
        create_topic(clusters.a, topic)
        produce(clusters.a, topic, fresh_records(topic, 10))
    flows = {"A->B": "orders, payments", "A->C": "orders"}
    deployment = deploy(tmp_path, clusters.by_alias, flows)
    assert [window.result.copied for window in deployment.windows()] == [20, 10]
    deploy(tmp_path, clusters.by_alias, {"A->B": "orders"})
    for topic in ("orders", "payments"):
        produce(clusters.a, topic, fresh_records(f"{topic} 2", 5))
    assert [window.result.copied for window in deployment.windows()] == [5]
    assert await_settled(clusters.b, "A.payments") == {0: 11}
    assert topics_of(clusters.c) == {"A.orders"} | internal_topics("A")
    deploy(tmp_path, clusters.by_alias, flows)
    assert [window.result.copied for window in deployment.windows()] == [5, 5]
    for topic in ("orders", "payments"):
        assert assert_mirrored(clusters.a, topic, clusters.b, f"A.{topic}") == 15


@pytest.mark.long  # windows/test_purged and offsets/test_resets fail too
def test_records_deleted_before_they_were_copied(clusters: Clusters, running: Deployment) -> None:
    more(clusters)
    client = admin(clusters.a)
    (deleted,) = client.delete_records([TopicPartition("orders", 0, 25)]).values()
    deleted.result()
    window = running.window("A->B")
    assert errors(window) == {"SourceTruncated"}
    assert all("--accept-loss" in str(row.error) and "--start-again" in str(row.error) for row in window.result.rows)
    assert reset(running, Choice.ACCEPT_LOSS) == [(0, 25, 5)]
    window = running.window("A->B")
    assert window.result.copied == 5 and window.result.is_verified
    two = fresh_records("two", 10)
    assert values(read_all(clusters.b, "A.orders")[0]) == values(fresh_records("one", 20) + two[5:])
    assert verified(running) == 5  # what both logs still hold
    assert reset_is_idle(running)


def reset_is_idle(deployment: Deployment) -> bool:
    """Nothing is left to decide."""
    with deployment.opened("A->B") as opened:
        return consider(opened, ResetOrder(("orders",), (), Choice.ACCEPT_LOSS)) == []


@pytest.mark.parametrize("recreate", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_source_topic_created_again(recreate: bool, clusters: Clusters, running: Deployment) -> None:
    emit_syncs(running)
    delete_topic(clusters.a, "orders")
    (refused,) = running.window("A->B").prepared.refused
    assert "does not have it any more" in refused and "--forget" in refused
    with running.opened("A->B") as opened:  # where it has moved, it may go, and no reset is allowed
        freeze(opened, ["orders"], reason="moved", by="ada")
        assert "--forget" not in str(plan_topics(opened).refused)
        unfreeze(opened, ["orders"], reason="back", by="ada")
    create_topic(clusters.a, "orders")
    more(clusters, count=10)
    assert errors(running.window("A->B")) == {"TopicRecreated"}
    with running.opened("A->B") as opened, pytest.raises(ResetNotPossible):
        consider(opened, ResetOrder(("orders",), (), Choice.ACCEPT_LOSS))
    assert reset(running, Choice.START_AGAIN, recreate=recreate) == [(0, 0, 0)]
    window = running.window("A->B")
    assert window.result.copied == 10 and window.result.is_verified
    before = [] if recreate else fresh_records("one", 20)
    assert values(read_all(clusters.b, "A.orders")[0]) == values(before + fresh_records("two", 10))
    assert verified(running) == 10
    emit_syncs(running)
    syncs = [OffsetSync.decode(each.key or b"", each.value or b"") for each in read_all(clusters.a, SYNCS)[0]]
    end = 0 if recreate else 21  # twenty records, and a transaction's marker
    assert [(sync.upstream, sync.downstream) for sync in syncs[-3:]] == [(0, end), (1, end + 1), (9, end + 9)]


def test_a_source_topic_that_is_gone_for_good(clusters: Clusters, running: Deployment) -> None:
    create_topic(clusters.a, "others")
    delete_topic(clusters.a, "orders")
    assert running.window("A->B").prepared.refused
    assert reset(running, Choice.FORGET) == [(0, -1, 0)]
    deploy(running.path.parent, clusters.by_alias, {"A->B": "orders, others"})
    window = running.window("A->B")
    assert not window.prepared.refused and not errors(window)
    assert await_settled(clusters.b, "A.orders") == {0: 21}
    create_topic(clusters.a, "orders")  # what comes back under the name is not taken for the old one
    more(clusters)
    assert errors(running.window("A->B")) == {"TopicRecreated"}


@pytest.mark.parametrize(("again", "is_new"), [(True, True), pytest.param(False, False, marks=pytest.mark.long)])
def test_a_remote_topic_created_again(again: bool, is_new: bool, clusters: Clusters, running: Deployment) -> None:
    """Found out also where nothing is new, and where the flow itself has made it anew."""
    delete_topic(clusters.b, "A.orders")
    if is_new:
        more(clusters)
    assert errors(running.window("A->B")) == {"TargetTruncated"}
    if again:
        assert reset(running, Choice.START_AGAIN) == [(0, 0, 0)]
    else:
        assert reset(running, Choice.ACCEPT_LOSS) == [(0, 20, 20)]
    more(clusters, "three", 3)
    window = running.window("A->B")
    assert window.result.is_verified, [str(row.error) for row in window.result.rows]
    two = fresh_records("two", 10) if is_new else []
    expected = (fresh_records("one", 20) if again else []) + two + fresh_records("three", 3)
    assert values(read_all(clusters.b, "A.orders")[0]) == values(expected)
    assert verified(running) == len(expected)


def test_records_of_somebody_else(clusters: Clusters, running: Deployment) -> None:
    produce(clusters.b, "A.orders", fresh_records("foreign", 3))
    more(clusters)
    assert errors(running.window("A->B")) == {"ForeignRecords"}
    assert reset(running, Choice.ACCEPT_LOSS) == [(0, 20, 0)]
    window = running.window("A->B")
    assert window.result.copied == 10 and window.result.is_verified
    expected = fresh_records("one", 20) + fresh_records("foreign", 3) + fresh_records("two", 10)
    assert values(read_all(clusters.b, "A.orders")[0]) == values(expected)
    assert verified(running) == 30


def test_the_command(clusters: Clusters, running: Deployment, tmp_path: Path) -> None:
    """A dry run unless --yes; --yes wants a reason; a cluster replaced under its alias is taken on with --identity."""
    from typer.testing import CliRunner

    def run(*arguments: str) -> tuple[int, str]:
        where = ["--config", str(running.path), "--ledger", running.ledger, "--flow", "A->B"]
        result = CliRunner().invoke(app, ["reset", *where, *arguments])
        return result.exit_code, result.output

    start_again = ("--topic", "orders", "--start-again")
    assert run(*start_again)[0] == 0 and "A dry run" in run(*start_again)[1]
    assert await_settled(clusters.b, "A.orders") == {0: 21}
    assert not running.window("A->B").result.rows
    assert run(*start_again, "--yes")[0] == 2  # no reason
    shown = run("--topic", "orders")
    assert shown[0] == 0 and "every partition can continue by itself" in shown[1]
    assert run("--accept-loss")[0] == 2 and run("--yes", "--reason", "x")[0] == 2
    assert run("--topic", "unknown", "--forget")[0] == 2
    assert "Nothing to decide" in run("--topic", "orders", "--accept-loss")[1]
    nowhere = run("--topic", "orders", "--partition", "99", "--accept-loss")
    assert nowhere[0] == 2 and "there is no partition 99" in nowhere[1]
    assert run("--topic", "orders", "--start-again", "--identity")[0] == 2
    status, said = run(*start_again, "--yes", "--reason", "to see it", "--json")
    assert status == 0 and '"done": true' in said
    window = running.window("A->B")
    assert window.result.copied == 20 and window.result.is_verified
    assert "Nothing to decide" in run("--identity")[1]
    create_topic(clusters.c, "orders")
    moved = deploy(tmp_path, {"A": clusters.c, "B": clusters.b}, {"A->B": "orders"})
    assert moved == running
    assert "A dry run" in run("--identity")[1]
    assert json.loads(run("--identity", "--json")[1])["continues"]["name"] == "A->B"
    assert run("--identity", "--yes", "--reason", "A was replaced")[0] == 0
    assert errors(running.window("A->B")) == {"TopicRecreated"}
    assert "the source topic was created again" in run()[1]

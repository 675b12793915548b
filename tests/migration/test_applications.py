"""Real applications, each a process, while their move group moves: every record once, in order, read once by each of them."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.runbooks.draining import SourceNotQuiet
from airmirror.runbooks.migration.consumers import GroupsHaveMembers
from airmirror.runbooks.migration.undo import undo_move
from airmirror_local.brokers import Broker
from airmirror_local.shop import App, start_consumer, start_producer, start_transformer
from support.acls import EVERYBODY
from support.following import patiently
from support.migrations import ORDER, move_of, moving, takes
from support.topics import create_topic, read_all

SOON = replace(ORDER, wait=2.0)


@contextmanager
def running(apps: list[App]) -> Iterator[list[App]]:
    try:
        yield apps
    finally:
        for app in apps:
            app.process.kill()


def values(cluster: Broker, topic: str) -> list[str]:
    return [(each.value or b"").decode() for its in read_all(cluster, topic).values() for each in its]


def await_lines(app: App, count: int) -> None:
    for attempt in patiently():
        with attempt:
            assert len(app.lines()) >= count, of(app)


def of(*apps: App) -> str:
    """What these applications have done: how many lines, whether they still run, and what they last said."""
    return "\n".join(
        f"{app.file.name}: {len(app.lines())} lines, runs: {app.process.running} {app.process.log_tail()}"
        for app in apps
    )


def assert_once(found: Counter[str], expected: Counter[str], what: str) -> None:
    """Each value so often as expected; a failure names some that are missing or too many, not thousands that are equal."""
    missing, extra = expected - found, found - expected
    some = f"missing {missing.total()}: {list(missing)[:20]}; too many {extra.total()}: {list(extra)[:20]}"
    assert not missing and not extra, f"{what}: {some}"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_producers_consumers_and_one_that_is_both(east: Broker, west: Broker, tmp_path: Path) -> None:
    """What reads and writes the move group stops with the consumers, and starts with the producers."""
    into = create_topic(east, f"invoices-{uuid.uuid4().hex[:8]}", 2)
    first, _ = moving(east, west, tmp_path, partitions=3)
    flow, _ = moving(east, west, tmp_path, topics=f"{first.topic}, {into}", move_shop_topics=f"{first.topic}, {into}")
    alias, topic = flow.flow.source.alias, first.topic
    name = f"billing-{uuid.uuid4().hex[:8]}"
    remote: Callable[[str], str] = lambda each: f"{alias}.{each}"  # noqa: E731
    with running([]) as apps:

        def start(app: App) -> App:
            apps.append(app)
            return app

        def consumers(broker: Broker, at: Callable[[str], str]) -> list[App]:
            return [
                start(start_consumer(tmp_path, f"{name}-{protocol}", protocol, broker.bootstrap, [at(topic), at(into)]))
                for protocol in ("classic", "consumer")
            ]

        def producers(broker: Broker, at: Callable[[str], str]) -> list[App]:
            kinds = ("transactional", "idempotent", "plain")
            return [
                start(
                    start_producer(
                        tmp_path, f"{kind}.{'east' if broker is east else 'west'}", kind, broker.bootstrap, [at(topic)]
                    )
                )
                for kind in kinds
            ]

        writers, readers = producers(east, str), consumers(east, str)
        both = [start(start_transformer(tmp_path, f"{name}-both", east.bootstrap, topic, into))]
        for app in (*readers, *both):
            await_lines(app, 100)
        takes(flow.opened, "mirror", order=replace(ORDER, wait=60.0))
        with pytest.raises(GroupsHaveMembers, match=f"{name}-classic-app at"):
            takes(flow.opened, "cut_over_consumers")
        for app in (*readers, *both):
            app.stop()
        takes(flow.opened, "check_groups", "cut_over_consumers", order=SOON)
        readers += consumers(west, remote)
        takes(flow.opened, "mirror", order=replace(ORDER, wait=60.0))
        for app in readers[2:]:
            await_lines(app, 100)
        with pytest.raises(SourceNotQuiet, match=r"of transactional id transactional\."):
            takes(flow.opened, "cut_over_producers", order=SOON)
        for app in writers:
            app.stop()
        takes(flow.opened, "cut_over_producers", order=replace(ORDER, wait=60.0))
        writers += producers(west, remote)
        both.append(start(start_transformer(tmp_path, f"{name}-both", west.bootstrap, remote(topic), remote(into))))
        time.sleep(3)  # the time for which applications write over there
        for app in writers:
            app.stop()
        acknowledged = Counter(each for app in writers for each in app.lines())
        for attempt in patiently():
            with attempt:
                assert sum(len(app.lines()) for app in both) >= acknowledged.total(), of(*both)
                for one, other in zip(readers[:2], readers[2:], strict=True):
                    assert len(one.lines()) + len(other.lines()) >= 2 * acknowledged.total(), of(one, other)
        assert_once(Counter(each for app in both for each in app.lines()), acknowledged, of(*both))
        assert_once(Counter(values(west, remote(topic))), acknowledged, "every record once")
        assert_once(Counter(values(west, remote(into))), acknowledged, "and what came of it")
        for one, other in zip(readers[:2], readers[2:], strict=True):
            # of both topics
            assert_once(Counter((*one.lines(), *other.lines())), acknowledged + acknowledged, of(one, other))
        for its in read_all(west, remote(topic)).values():
            last: dict[str, int] = {}
            for each in its:
                who, _, number = (each.value or b"").decode().rpartition("-")
                assert int(number) > last.get(who, 0), "in order"
                last[who] = int(number)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_producers_that_ignore_a_denial_and_continue(guarded: list[Broker], tmp_path: Path) -> None:
    continue_in_spite_of_a_block(*guarded, tmp_path, move_block_producers="acl", move_shop_principals=EVERYBODY)


def continue_in_spite_of_a_block(east: Broker, west: Broker, tmp_path: Path, **settings: str) -> None:
    """What they were acknowledged is replicated, what comes later is refused; taken back, they write on as if nothing had
    been."""
    flow, _ = moving(east, west, tmp_path, partitions=2, move_quiet_ms="1000", **settings)
    order = replace(ORDER, wait=60.0)
    with running([]) as apps:
        for kind in ("idempotent", "plain"):
            apps.append(start_producer(tmp_path, f"{kind}.east", kind, east.bootstrap, [flow.topic]))
        for app in apps:
            await_lines(app, 100)
        takes(flow.opened, "mirror", order=order)
        takes(flow.opened, "cut_over_consumers", "cut_over_producers", order=order)
        before = [app.lines() for app in apps]
        assert_once(
            Counter(values(west, flow.remote_topic)), Counter(each for its in before for each in its), of(*apps)
        )
        time.sleep(2)  # the time for which they try
        assert [app.lines() for app in apps] == before and all(app.process.running for app in apps)
        undo_move(flow.opened, move_of(flow.opened), ORDER, lambda phase: None)
        for app, its in zip(apps, before, strict=True):
            await_lines(app, len(its) + 50)
            app.stop()
        takes(flow.opened, "mirror", order=order)
        acknowledged = Counter(each for app in apps for each in app.lines())
        assert_once(Counter(values(west, flow.remote_topic)), acknowledged, of(*apps))
        assert flow.assert_equal() == acknowledged.total()

"""Three clusters of one node each, for all topologies; every test begins and ends with no topics on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from airmirror_local.ports import free_port
from support.topics import delete_all_topics
from support.topologies import Clusters


@pytest.fixture(scope="package")
def three_brokers(stack_directory: Path) -> Iterator[Clusters]:
    started: list[Broker] = []
    try:
        for name in ("a", "b", "c"):
            port = free_port() if name == "b" else None
            started.append(start_broker(stack_directory, f"topologies-{name}", IMPATIENT, proxy_port=port))
        yield Clusters(*started)
    finally:
        for broker in started:
            broker.kill()


@pytest.fixture
def clusters(three_brokers: Clusters) -> Iterator[Clusters]:
    yield three_brokers
    for broker in three_brokers.by_alias.values():
        delete_all_topics(broker)

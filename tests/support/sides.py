"""Two clusters of a package's own: flows there and back have the same aliases in every test, and no flows of others around."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support.topologies import delete_all_topics


@dataclass(frozen=True)
class Sides:
    """The two clusters; every test begins and ends with no topics on them."""

    east: Broker
    west: Broker


def _two_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    directory, started = tmp_path_factory.mktemp("sides"), list[Broker]()
    try:
        for name in ("there", "back"):
            started.append(start_broker(directory, name, IMPATIENT))
        yield Sides(*started)
    finally:
        for broker in started:
            broker.kill()


two_brokers = pytest.fixture(scope="package", name="two_brokers")(_two_brokers)
two_brokers_of_module = pytest.fixture(scope="module", name="two_brokers")(_two_brokers)  # of a room that has none


@pytest.fixture
def sides(two_brokers: Sides, stack_directory: Path) -> Iterator[Sides]:
    yield two_brokers
    for broker in (two_brokers.east, two_brokers.west):
        delete_all_topics(broker)

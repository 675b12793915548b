"""A cluster of three nodes, for the tests of leaders that move, die or come back with less."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airmirror_local.brokers import IMPATIENT, BrokerCluster, start_cluster


@pytest.fixture(scope="package")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    """Three nodes, which the tests of this folder share: whoever ends one starts it again."""
    cluster = start_cluster(tmp_path_factory.mktemp("three"), "three", 3, IMPATIENT)
    try:
        yield cluster
    finally:
        cluster.stop()

"""Tests of ``heartbeats`` topics: clusters of their own, since flows of other tests would replicate them, and one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from airmirror_local.brokers import Broker
from support.sides import Sides
from support.topics import admin, delete_topic


@pytest.fixture(scope="session")
def east(apart: Sides) -> Broker:
    """In the place of the cluster that all share."""
    return apart.east


@pytest.fixture(scope="session")
def west(apart: Sides) -> Broker:
    """In the place of the cluster that all share."""
    return apart.west


@contextmanager
def heartbeats_deleted(*clusters: Broker) -> Iterator[None]:
    """Deletes, at the end, the heartbeats topics of these clusters, their own and the replicated ones."""
    try:
        yield
    finally:
        for cluster in clusters:
            for name in list(admin(cluster).list_topics(timeout=30).topics):
                if name.rpartition(".")[2] == "heartbeats":
                    delete_topic(cluster, name)

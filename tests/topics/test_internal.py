"""Internal topics that vanish while they are looked at: an error that names them, and the next window makes them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.naming import mapping_topic, progress_topic
from airmirror.topics.internal import _check, ensure_internal_topics
from airmirror_local.brokers import Broker
from support.flows import mirror
from support.topics import delete_topic, end_offsets


def test_an_internal_topic_that_is_deleted_while_it_is_looked_at(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path).flow
    mappings, progress = mapping_topic(flow.source.alias), progress_topic(flow.source.alias)
    ensure_internal_topics(flow)
    with Routes(flow.target, "test") as routes:
        routes.refresh([mappings, progress])
        delete_topic(west, progress)
        with pytest.raises(TopicNotFound, match=progress):
            _check(routes, mappings, progress)
    ensure_internal_topics(flow)
    assert end_offsets(west, progress)

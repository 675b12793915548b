"""Internal topics that can't be made, or vanish while they are looked at: an error that names them, and the way out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.clusters.admin.creation import TopicCreationRefused
from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.naming import mapping_topic, progress_topic
from airmirror.offsets.checkpoints import emit_checkpoints
from airmirror.offsets.syncs import emit_offset_syncs
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


def test_too_few_brokers_for_a_topic_are_told_with_the_key_of_its_replication_factor(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """One broker, and the keys' default, 3: another key than that of remote topics decides each."""
    made = mirror(east, west, tmp_path, settings={"offset-syncs.topic.location": "target"})
    factors = ("offset_storage", "offset_syncs_topic", "checkpoints_topic")
    three = {f"{name}_replication_factor": 3 for name in factors}
    flow, ledger = replace(made.flow, settings=replace(made.flow.settings, **three)), made.opened.ledger  # type: ignore[arg-type]
    with pytest.raises(TopicCreationRefused, match=r"; set offset\.storage\.replication\.factor to the number"):
        ensure_internal_topics(flow)
    with pytest.raises(TopicCreationRefused, match=r"; set offset-syncs\.topic\.replication\.factor to the number"):
        emit_offset_syncs(flow, ledger, window="w")
    with pytest.raises(TopicCreationRefused, match=r"; set checkpoints\.topic\.replication\.factor to the number"):
        emit_checkpoints(flow, ledger, window="w")

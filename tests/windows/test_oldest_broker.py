"""The oldest Kafka that is supported, 2.8.2 with ZooKeeper: one window to it, where no topic is yet, and one from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror_local.brokers import IMPATIENT, Broker
from airmirror_local.zookeeper import old_broker
from support.faults import records
from support.flows import mirror
from support.topics import admin, produce

OLDEST = "2.8.2"


@pytest.mark.long  # test_protocols.py has the first protocol, test_old_formats.py the logs, without an old broker
def test_a_window_to_the_oldest_kafka_and_one_from_it(east: Broker, west: Broker, tmp_path: Path) -> None:
    """By names (Fetch 12), in the first protocol of transactions; the target does not know all configs of a remote topic."""
    with old_broker(tmp_path, "old", OLDEST, IMPATIENT) as old:
        to = mirror(east, old, tmp_path, partitions=2)
        produce(east, to.topic, records(400))
        produce(east, to.topic, records(50, 400), transactional="abort")
        assert not admin(old).list_topics(timeout=60).topics
        assert to.run().is_verified and to.assert_equal() == 400
        back = mirror(old, west, tmp_path, partitions=2, topic=to.remote_topic)
        assert back.run().is_verified and back.assert_equal() == 400

"""The ends of leader epochs in a log, which tell it from another log of the same partition (KIP-101, KIP-320)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka.protocol.consumer.offsets import OffsetForLeaderEpochRequest

from airmirror.clusters.protocol.asking import PATIENCE_SECONDS, ask_leaders
from airmirror.clusters.protocol.errors import FetchFailed, PartitionMoved, error_name
from airmirror.clusters.protocol.log import EARLIEST, MOVED, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.partitions import TopicPartition, grouped

OFFSET_FOR_LEADER_EPOCH = 23


@dataclass(frozen=True)
class EpochEnd:
    """The largest epoch of a log that is not above the one asked for, and where it ends (exclusive); -1 and -1: all epochs
    of the log are below it, and it is not known which of them is the last."""

    epoch: int
    offset: int


def epoch_ends(routes: Routes, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
    """Ask the leader of each partition where an epoch ends in its log; all brokers at once.

    Raises PartitionMoved, LeaderNotAvailable or BrokerUnreachable after half a minute; FetchFailed.
    """
    return ask_leaders(routes, epochs, lambda: _epoch_ends(routes, epochs), PATIENCE_SECONDS)


def epochs_since(routes: Routes, starts: Mapping[TopicPartition, int]) -> dict[TopicPartition, list[EpochEnd]]:
    """The epochs of each log from that of the record before an offset on, each with where it ends, in their order.

    The first is -1, up to the log's start. Nothing more where the leader knows none. Raises what ``epoch_ends`` does,
    TopicNotFound.
    """
    routes.refresh({partition.topic for partition in starts})
    begins = offsets_with_patience(routes, starts, EARLIEST)
    found = {partition: [EpochEnd(-1, begin)] for partition, begin in begins.items()}
    asked = {partition: epoch for partition in starts if (epoch := routes.leader(partition).epoch) >= 0}
    while asked:
        following = dict[TopicPartition, int]()
        for partition, end in epoch_ends(routes, asked).items():
            if end.epoch < 0 or end.offset < max(starts[partition], begins[partition] + 1):
                continue
            found[partition].insert(1, end)
            if (before := min(end.epoch, asked[partition]) - 1) >= 0:
                following[partition] = before
        asked = following
    return found


def epoch_before(ends: Sequence[EpochEnd], offset: int) -> int:
    """The epoch of the record before an offset, by the ``ends`` of epochs in their order; -1: they do not tell."""
    return next((end.epoch for end in ends if offset <= end.offset), -1) if offset > 0 else -1


def _epoch_ends(routes: Routes, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
    of_topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    of_partition = of_topic.OffsetForLeaderPartition
    found: dict[TopicPartition, EpochEnd] = {}
    for node, keys in grouped((routes.leader(key).node, key) for key in epochs).items():
        connection = routes.connection(node)
        answer = connection.request(
            OffsetForLeaderEpochRequest(
                replica_id=-1,
                topics=[
                    of_topic(
                        topic=topic,
                        partitions=[
                            of_partition(partition=key.partition, current_leader_epoch=-1, leader_epoch=epochs[key])
                            for key in its
                        ],
                    )
                    for topic, its in grouped((key.topic, key) for key in keys).items()
                ],
            ),
            connection.version(OFFSET_FOR_LEADER_EPOCH, 2, 4, "OffsetForLeaderEpoch"),
        )
        for topic in answer.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.topic, each.partition)
                if each.error_code in MOVED:
                    raise PartitionMoved(routes.alias, partition, error_name(each.error_code))
                if each.error_code:
                    raise FetchFailed(routes.alias, partition, error_name(each.error_code))
                found[partition] = EpochEnd(each.leader_epoch, each.end_offset)
        if missing := set(keys) - set(found):
            raise connection.nonsense(f"its answer to OffsetForLeaderEpoch leaves out {min(missing)}")
    return found

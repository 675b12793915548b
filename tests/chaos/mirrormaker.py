"""The remains of a dead MirrorMaker 2: records on the target past the progress that it had written last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airmirror.clusters.admin.appender import Appender
from airmirror.flows.prepare import prepare
from airmirror.naming import progress_topic
from airmirror.wire.mirrormaker import murmur2_partition, source_offset_key, source_offset_value
from support.topics import Record, produce, read_all

if TYPE_CHECKING:
    from chaos.run import Seed

WRITTEN, COPIED, PROGRESS = 200, 150, 100  # records a partition: on the source, on the target, and told in mm2-offsets


def leave_behind(seed: Seed) -> dict[tuple[str, int], int]:
    """Fill the source, copy most of it, write less as progress; where mappings will begin, by partition."""
    begins = {}
    with seed.open() as opened:
        prepared = prepare(opened)
        flow = prepared.opened.flow
        places = 3  # offset.storage.partitions
        for topic, remote in seed.topics.items():
            for partition in range(len(read_all(seed.source, topic))):
                produce(
                    seed.source, topic, [Record(b"0 %d" % n, b"before") for n in range(WRITTEN)], partition=partition
                )
                copied = read_all(seed.source, topic)[partition][:COPIED]
                produce(seed.target, remote, copied, partition=partition)
                key = source_offset_key(flow.source.alias, topic, partition)
                with Appender(
                    flow.target, progress_topic(flow.source.alias), murmur2_partition(key, places)
                ) as appender:
                    appender.append([(key, source_offset_value(PROGRESS))])
                begins[topic, partition] = PROGRESS + 1
    return begins

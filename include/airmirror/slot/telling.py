"""What a slot tells its driver while it runs: an event in its window's claim, appended to the segment topic.

Outside transactions, as all claims: a slot whose transactional id is stuck has something to tell too. It renews a claim that was
granted; where that is over by now it changes nothing.
"""

from __future__ import annotations

import time

from kafka.record.default_records import DefaultRecordBatchBuilder

from airmirror.clusters.protocol.routes import Routes
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Slot
from airmirror.slot.errors import InternalTopicUnfit
from airmirror.slot.outbox import PURPOSE
from airmirror.wire.requests import PRODUCE, MalformedResponse, decode_produce, encode_produce
from airmirror.wire.segments import Claim

NO_PRODUCER = -1


def tell(slot: Slot, claim: Claim) -> None:
    """Append a claim record. Raises a cluster's error, InternalTopicUnfit where it is refused."""
    log = TopicPartition(slot.segment_topic, 0)
    with Routes(slot.flow.target, f"airmirror|{slot.flow.name}|{slot.number}") as target:
        target.refresh([log.topic])
        connection = target.connection(target.leader(log).node, PURPOSE)
        version = connection.version(PRODUCE, 9, min(connection.produce_version, 11), "Produce")
        connection.send(
            encode_produce(
                version=version,
                correlation_id=connection.next_correlation_id(),
                client_id=connection.client_id,
                transactional_id=None,
                batches={log: [_batch(claim)]},
                topic_ids=target.topic_ids,
                timeout_ms=30_000,
            )
        )
        try:
            _, answers = decode_produce(version, connection.receive(), target.topic_names)
        except MalformedResponse as problem:
            raise connection.nonsense(f"its answer to a write ({problem.reason})") from problem
        answer = answers.get(log)
        if answer is None or answer.error:
            reason = f"refuses a record: {answer.message or answer.error}" if answer else "was left out of an answer"
            raise InternalTopicUnfit(target.alias, log.topic, reason)


def _batch(claim: Claim) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=NO_PRODUCER,
        producer_epoch=NO_PRODUCER,
        base_sequence=NO_PRODUCER,
        batch_size=1 << 20,
    )
    now_ms, value = int(time.time() * 1000), claim.encode_value()
    builder.append(0, timestamp=now_ms, key=claim.encode_key(), value=value, headers=[])
    return bytes(builder.build())

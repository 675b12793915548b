"""The dead letter topic (``errors.deadletterqueue.topic.name``): where records are kept that remote topics do not take.

It lies on the target. Its records have their own key, value, headers and timestamp, and headers of their origin by the
names that Kafka Connect gives them (DeadLetterQueueReporter.java). They are written in the transaction that accounts for
them as declared losses (invariants A and E).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.config import Flow
from airmirror.partitions import TopicPartition
from airmirror.slot.outbox import Outbox, Outgoing
from airmirror.slot.refusals import DeadLetterRefused, is_tolerant
from airmirror.wire.batches import HEADER_SIZE
from airmirror.wire.headers import record, with_headers
from airmirror.wire.requests import Produced

if TYPE_CHECKING:
    from airmirror.wire.records import Records


def dead_letter_topic(flow: Flow) -> str | None:
    """The name of the flow's dead letter topic; None where there is none."""
    name = flow.settings.errors_deadletterqueue_topic_name
    return name if name and is_tolerant(flow) else None


def open_dead_letter_topic(flow: Flow, target: Routes) -> DeadLetterTopic | None:
    """The flow's dead letter topic as it is now. Raises TopicNotFound."""
    name = dead_letter_topic(flow)
    if name is None:
        return None
    target.refresh([name])
    limit = topic_configs(target, [name], ["max.message.bytes"])[name]["max.message.bytes"]
    return DeadLetterTopic(flow, name, target.partitions(name), int(limit))


@dataclass(frozen=True)
class DeadLetterTopic:
    """The topic and what it takes."""

    flow: Flow
    name: str
    partitions: int
    max_message_bytes: int

    def write(self, source: TopicPartition, one: Records, codec: int, reason: str, outbox: Outbox) -> None:
        """Put the one record of ``one`` into the outbox, where it fits. Those of a source partition stay in order."""
        payload = self._letter(source, one, codec, reason)
        if len(payload) + HEADER_SIZE > self.max_message_bytes:
            return
        target, time = TopicPartition(self.name, source.partition % self.partitions), int(one.timestamps[0])
        batch = outbox.batch(target, payload, 1, (time, time), codec)
        refused = partial(self._refused, source, int(one.offsets[0]))
        outbox.put(Outgoing(target=target, buffers=[batch], size=len(batch), count=1, on_refused=refused))

    def _letter(self, source: TopicPartition, one: Records, codec: int, reason: str) -> bytes:
        """The bytes of a batch after its header."""
        from airmirror.wire.codecs import compress  # only where there is one; the fast path needs no codec

        origin = {
            "topic": source.topic,
            "partition": str(source.partition),
            "offset": str(int(one.offsets[0])),
            "connector.name": self.flow.name,
            "exception.message": reason,
        }
        headers = [(f"__connect.errors.{name}", text.encode()) for name, text in origin.items()]
        body = bytes(one.data[one.starts[0] : one.ends[0]])
        return bytes(compress(codec, record(with_headers(body, headers))))

    def _refused(self, source: TopicPartition, offset: int, answer: Produced) -> Exception:
        place = (self.flow.source.alias, *source, offset, self.flow.target.alias, self.name)
        return DeadLetterRefused(*place, code=answer.error, error=answer.message or error_name(answer.error))

"""Topics deleted from a cluster, on a person's explicit order."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_exponential

from airmirror.clusters.admin.client import Admin
from airmirror.errors import AirmirrorError


@dataclass(eq=False)
class TopicDeletionRefused(AirmirrorError):
    """A topic that can't be deleted."""

    cluster: str
    topic: str
    reason: str

    def __str__(self) -> str:
        return f"cluster {self.cluster!r}: topic {self.topic!r} can't be deleted: {self.reason}"


def delete_topics(admin: Admin, names: Collection[str], timeout: float = 60.0) -> None:
    """Delete topics and wait until the cluster does not list them any more; one that is not there is no error.

    Raises TopicDeletionRefused, and what describe() raises.
    """
    if not names:
        return
    for name, future in admin.client.delete_topics(list(names), request_timeout=timeout).items():
        try:
            future.result()
        except KafkaException as error:
            cause = error.args[0]
            if cause.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise TopicDeletionRefused(admin.cluster.alias, name, cause.str()) from error

    def left() -> set[str]:
        return set(names).intersection(admin.topic_names(timeout))

    waiting = Retrying(
        retry=retry_if_result(bool),
        stop=stop_after_delay(timeout),
        wait=wait_exponential(multiplier=0.05, max=1),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else set(names),
    )
    for name in sorted(waiting(left)):
        raise TopicDeletionRefused(admin.cluster.alias, name, f"it is still there after {timeout:g} s")

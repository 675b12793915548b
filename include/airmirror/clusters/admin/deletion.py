"""Topics and consumer groups deleted from a cluster: on a person's explicit order, or by whoever has made them."""

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


@dataclass(eq=False)
class GroupDeletionRefused(AirmirrorError):
    """A consumer group that can't be deleted."""

    cluster: str
    group: str
    reason: str

    def __str__(self) -> str:
        return (
            f"cluster {self.cluster!r}: consumer group {self.group!r} can't be deleted: {self.reason}; this user needs DELETE on "
            "it, and a group with members goes after their session has timed out"
        )


def delete_groups(admin: Admin, names: Collection[str], timeout: float = 60.0) -> None:
    """Delete consumer groups; one that is not there is no error. Members that have died are awaited until they time out.

    Raises GroupDeletionRefused.
    """

    def left() -> dict[str, KafkaError]:
        asked = admin.client.delete_consumer_groups(list(names), request_timeout=timeout) if names else {}
        found = {name: error.args[0] for name, future in asked.items() if (error := future.exception())}
        return {name: error for name, error in found.items() if error.code() != KafkaError.GROUP_ID_NOT_FOUND}

    waiting = Retrying(
        retry=retry_if_result(lambda found: any(error.code() in _PASSING for error in found.values())),
        stop=stop_after_delay(timeout),
        wait=wait_exponential(multiplier=0.1, max=2),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else {},
    )
    for name, error in sorted(waiting(left).items()):
        raise GroupDeletionRefused(admin.cluster.alias, name, error.str())


_PASSING = frozenset(
    {
        KafkaError.NON_EMPTY_GROUP,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
    }
)

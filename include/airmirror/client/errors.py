"""The errors of an application that asks a cluster."""

from __future__ import annotations

from airmirror.errors import AirmirrorError


class ClusterNotAnswering(AirmirrorError, transient=True):
    """No broker answered in time, or the cluster refuses to."""

    says = "the cluster at {0.bootstrap} does not answer: {0.reason}; are its brokers up, and is the log-in right?"
    bootstrap: str
    reason: str


class NoCheckpoints(AirmirrorError):
    """A cluster without the checkpoints of another one. ``there``: the checkpoint topics that it has."""

    bootstrap: str
    topic: str
    there: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"the cluster at {self.bootstrap} has no topic {self.topic!r}; its checkpoint topics are: "
            f"{', '.join(self.there) or 'none'}; is the remote cluster's alias right, and are emit.checkpoints.enabled and "
            "the replication policy as the flow has them?"
        )


class CheckpointsNotRead(AirmirrorError, transient=True):
    """A checkpoint topic that could not be read to its end in time."""

    says = (
        "the cluster at {0.bootstrap}: {0.topic}-0 was read to offset {0.offset} only: {0.reason}; "
        "nothing is translated from a part of it, try again"
    )
    bootstrap: str
    topic: str
    offset: int
    reason: str

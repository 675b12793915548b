"""The errors of a window, and of one partition on the driver: the partition is held, the others continue."""

from __future__ import annotations

from airmirror.errors import AirmirrorError, command
from airmirror.slot.errors import EMPTY, CopyError, PartitionError, reset_command, seen, take_over_command, ways_out
from airmirror.times import utc
from airmirror.wire.mappings import GATE


class HangingTransaction(PartitionError):
    """A transaction on the source that is open for long, and that no coordinator shows this user: it may never end (KIP-664)."""

    producer_id: int
    producer_epoch: int
    first: int
    records: int
    says = (
        "{0.where}: a transaction of producer {0.producer_id} (epoch {0.producer_epoch}) is open from offset {0.first} on, "
        "and it is none of those that this user may see (Describe on transactional ids), so {0.records} offsets after it "
        "can't be read; as an administrator, `kafka-transactions.sh find-hanging --topic {0.topic} --partition {0.partition}` "
        "says whether it hangs, or only takes long"
    )


class ProgressDiffers(PartitionError):
    """MirrorMaker 2's progress is not that of the newest mapping record: this flow commits both at once (invariant A)."""

    progress_topic: str
    recorded: int
    position: int

    writer = ""  # who of MirrorMaker 2 was seen, set by ``of_writer``

    def __str__(self) -> str:
        where = f"{self.progress_topic} says that offset {self.recorded} was copied last"
        own = f"the newest mapping record ends at offset {self.position - 1}"
        if self.recorded < self.position:
            return (
                f"{self.where}: {where}, but {own}: {self.progress_topic} was cut or altered; "
                f"{reset_command(self, 'continue after the mapping record, and rewrite the progress', '--accept-loss')}"
            )
        return (
            f"{self.where}: {where}, but {own}: MirrorMaker 2, or another writer, has copied offsets {self.position} to "
            f"{self.recorded} since{seen(self.writer)}; {take_over_command(self)}; or, whatever it has copied, "
            f"{ways_out(self, ('continue after it', '--accept-loss'), EMPTY)}"
        )


class GateFailed(PartitionError):
    """The gate does not let a partition's range pass (invariant F); it is held."""

    first: int
    last: int
    reason: str
    says = "cluster {0.cluster!r}: {0.what}; mend the cause, then {airmirror:verify}"

    @property
    def span(self) -> str:
        """The partition and the range."""
        return f"{self.key}: offsets {self.first} to {self.last}"

    @property
    def what(self) -> str:
        """The range and the reason."""
        return f"{self.span} did not pass the gate: {self.reason}"


class PartitionHeld(PartitionError):
    """A partition that this window leaves out, because it is held."""

    offset: int
    reason: str
    by: str
    since_ms: int

    @property
    def is_decided(self) -> bool:
        """Return whether an operator decided it; else the gate holds it."""
        return self.by != GATE

    @property
    def what(self) -> str:
        """From where on, by whom, since when and why."""
        return f"{self.key}: held from offset {self.offset} on by {self.by} since {utc(self.since_ms)}: {self.reason}"

    def __str__(self) -> str:
        words = ("hold", "release", self.topic, "--partition", self.partition, "--reason", "…", "--yes")
        release = command(*words, flow=self.flow)
        mend = f"mend the cause, then {command('verify', flow=self.flow)}"
        way_out = f"release it: {release}" if self.is_decided else mend
        return f"cluster {self.cluster!r}: {self.what}; {way_out}"


class TargetDiffers(CopyError):
    """A comparison of both logs found a difference (the gate fails)."""

    offset: int
    target_offset: int
    difference: str
    says = "{0.where}: offset {0.offset} differs from {0.remote} offset {0.target_offset} on cluster {0.target!r}: {0.difference}"


class Unaccounted(PartitionError):
    """Mappings that do not add up or do not follow each other (invariants C, E and G)."""

    first: int
    last: int
    reason: str
    says = "{0.where}: offsets {0.first} to {0.last} are not accounted for: {0.reason}"


class FlowBusy(AirmirrorError, transient=True):
    """Another window of the flow is at work (invariant B)."""

    flow: str
    window: str
    owner: str
    since_ms: int

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r} is busy: window {self.window!r} of {self.owner} holds the lease "
            f"(last renewed {self.since_ms / 1000:.0f} s before this one asked); wait for it or end it"
        )


def unfreeze_command(flow: str, topic: str = "") -> str:
    """The command that unfreezes a flow, or one topic of it."""
    return command("flow", "unfreeze", *(("--topic", topic) if topic else ()), "--reason", "…", "--yes", flow=flow)


class FlowFrozen(AirmirrorError):
    """A flow that a person has frozen: no window writes to its remote topics any more, whatever the configuration says."""

    flow: str
    by: str
    since_ms: int
    reason: str

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r} was frozen by {self.by} at {utc(self.since_ms)}: {self.reason}; no window writes to its "
            f"remote topics any more, until it is unfrozen: {unfreeze_command(self.flow)}, or, where applications work on the "
            f"target by now, failed back: {command('failback', 'run', '--reason', '…', flow=self.flow)}"
        )


class TopicFrozen(PartitionError):
    """A topic of a flow that a person has frozen: no window writes to its remote topic any more."""

    by: str
    since_ms: int
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {frozen_topic(self.flow, self.topic, self.by, self.since_ms, self.reason)}"


def frozen_topic(flow: str, topic: str, by: str, since_ms: int, reason: str) -> str:
    """Who has frozen a topic, when and why, and the way out."""
    ways = f"if it has moved, name it in {flow}.topics.exclude; else unfreeze it: {unfreeze_command(flow, topic)}"
    return f"frozen by {by} at {utc(since_ms)}: {reason}; {ways}"


class ReturnOver(PartitionError, transient=True):
    """A topic that returned by this flow when the window looked at topics, and does no more: nothing of it is copied."""

    reverse: str

    def __str__(self) -> str:
        return f"{self.where}: {returns_no_more(self.reverse)}"


def returns_no_more(reverse: str) -> str:
    """Why a topic is not copied back, and the way out."""
    plan = command("failback", "plan", flow=reverse)
    return f"its return is over, as far as flow {reverse!r} says; {plan} shows its state"


class FenceStuck(AirmirrorError, transient=True):
    """A transactional id of the flow that can't be fenced, so that no window may write for the flow (invariant B)."""

    flow: str
    transactional_id: str
    reason: str
    partitions: tuple[str, ...] = ()  # where the end of its last transaction is still to be written
    says = (
        "flow {0.flow!r}: {0.transactional_id!r} can't be fenced: {0.reason}; `kafka-transactions.sh describe "
        "--transactional-id {0.transactional_id}` shows its state"
    )


class SameCluster(AirmirrorError, bad_input=True):
    """Source and target are one cluster."""

    flow: str
    cluster_id: str
    source: str
    target: str
    brokers: str
    says = (
        "flow {0.flow!r}: {0.source!r} and {0.target!r} are the same cluster (id {0.cluster_id}, brokers {0.brokers}); "
        "correct bootstrap.servers of one of them"
    )


class EqualClusterIds(AirmirrorError, bad_input=True):
    """Source and target have one cluster id and different brokers."""

    flow: str
    cluster_id: str
    source: str
    target: str
    source_brokers: str
    target_brokers: str
    says = (
        "flow {0.flow!r}: {0.source!r} (brokers {0.source_brokers}) and {0.target!r} (brokers {0.target_brokers}) have the "
        "same cluster id {0.cluster_id}: they are one cluster behind two listeners, which can't be mirrored to itself, or two "
        "that were formatted with one id; only where they are two: {0.flow}.equal.cluster.ids.allowed = true"
    )

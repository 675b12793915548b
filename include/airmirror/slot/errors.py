"""The errors of one partition of a window: it is left out with its error, the others continue."""

from __future__ import annotations

from airmirror.config import Flow
from airmirror.errors import AirmirrorError, command
from airmirror.partitions import OfCopy, OfPartition


class PartitionError(AirmirrorError, OfPartition):
    """An error of one partition (of the source, unless the message says otherwise)."""

    cluster: str
    topic: str
    partition: int

    flow = ""  # source->target, for the commands of the message: no fact of the partition, so ``of_flow`` sets it
    is_shared = False  # whether others write to its remote topic, by ``of_flow`` too: it is never begun again
    end_return = ""  # the command that ends the return of its topic, by ``of_flow`` too; empty: it does not return
    bad_from = ""  # which fact of an error is ``first_bad``; empty: none is

    @property
    def where(self) -> str:
        return f"cluster {self.cluster!r}: {self.key}"

    @property
    def first_bad(self) -> int | None:
        """The source offset from which on the partition can't go; None: nothing of it can be copied."""
        return int(getattr(self, self.bad_from)) if self.bad_from else None


class CopyError(PartitionError, OfCopy):
    """An error of one partition and its copy on the target."""

    target: str
    remote_topic: str


def of_flow(error: AirmirrorError | None, flow: Flow) -> AirmirrorError | None:
    """The error itself, given its flow where it meets it: from then on its commands run as printed."""
    if isinstance(error, PartitionError):
        error.flow, error.is_shared = flow.name, flow.is_aggregate
        into = flow.returns.get(error.topic)
        error.end_return = end_return(flow, into) if into else ""
    return error


def end_return(flow: Flow, into: str) -> str:
    """The command that ends the return of a topic of ``flow`` to ``into``, and deletes nothing."""
    return command("failback", "undo", "--topic", into, "--reason", "…", "--yes", flow=flow.reverse_name)


BEGINNING = "copy again from the source's first offset, appended after the existing records"
EMPTY = ("begin again in an empty remote topic", "--start-again", "--recreate-remote-topic")


def reset_command(error: PartitionError, what: str, *options: str) -> str:
    """A choice and how it is carried out; a remote topic is recreated for all partitions of a topic."""
    which = () if len(options) > 1 else ("--partition", error.partition)
    return f"{what}: {command('reset', '--topic', error.topic, *which, *options, flow=error.flow)}"


def ways_out(error: PartitionError, *ways: tuple[str, ...]) -> str:
    """Choices, each as ``reset_command`` has it. Never begun again is the remote topic of what returns, which is the original,
    and emptied for it one into which others copy."""
    fit = [way for way in ways if not (error.is_shared and way == EMPTY)]
    shown = [reset_command(error, *way) for way in fit if not (error.end_return and "--start-again" in way)]
    if error.end_return:
        shown.append(f"end its return, which deletes nothing: {error.end_return}")
    return ", or ".join(shown)


def take_over_command(error: PartitionError) -> str:
    """The way on after records that MirrorMaker 2 has copied meanwhile."""
    return f"stop it, and continue after its copies: {command('takeover', 'run', '--reason', '…', '--yes', flow=error.flow)}"


def seen(writer: str) -> str:
    """The part of a message that says who was seen."""
    return f" ({writer})" if writer else ""


class SourceTruncated(PartitionError):
    """The source no longer has the position to continue from (invariant E: never a silent jump)."""

    position: int
    log_start: int
    log_end: int

    def __str__(self) -> str:
        if self.position < self.log_start:
            lost = f"offsets {self.position} to {self.log_start - 1} were deleted before they were copied"
        else:
            lost = f"its log ends at {self.log_end}, below the position reached: it was truncated"
        return f"{self.where}: replication continues at offset {self.position}, but {lost}; " + ways_out(
            self, ("continue, and record the missing offsets as lost", "--accept-loss"), (BEGINNING, "--start-again")
        )


class SourceDiverged(PartitionError):
    """The source's log was cut and written again below the position (unclean leader election, a restored disk).

    ``end_offset``: where its leader epoch ends now; with ``is_other``, where the batch before the position begins, which is
    another one than was copied.
    """

    position: int
    epoch: int
    end_offset: int
    is_other: bool = False

    def __str__(self) -> str:
        now = f"leader epoch {self.epoch} ends at offset {self.end_offset} now"
        if self.is_other:
            now = f"the batch at offset {self.end_offset} is another one now"
        elif self.epoch < 0:
            now = "its leader has none of the leader epoch of its last batch, nor of a later one"
        accept = ("continue where the two logs part (the copies stay)", "--accept-loss")
        return (
            f"{self.where}: the log lost records that were copied up to offset {self.position - 1}: {now} (unclean leader "
            f"election, or a restored disk); {ways_out(self, accept, (BEGINNING, '--start-again'))}"
        )


class SourceCorrupt(PartitionError):
    """Batches of the source that can't be read."""

    says = (
        "{0.where}: nothing can be read from offset {0.position} on: {0.reason}; "
        "`kafka-dump-log.sh --deep-iteration` on its broker shows whether the log itself is damaged"
    )
    position: int
    reason: str

    bad_from = "position"


class AbortLeftOut(PartitionError):
    """Records of an aborted transaction that were taken for committed ones, since the source's leader did not name it.

    ``first``: where its records begin; ``until``: up to where they are committed on the target, -1 where none is; ``marker``:
    where the source's log ends the transaction. ``transactions``: that one, and others of the same answer, as (producer, first,
    marker).
    """

    producer: int
    first: int
    until: int
    marker: int
    transactions: tuple[tuple[int, ...], ...]

    @property
    def is_copied(self) -> bool:
        """Return whether records of it are committed on the target."""
        return self.until >= 0

    def __str__(self) -> str:
        what = (
            f"{self.where}: the partition's leader did not name a transaction as aborted, that of producer {self.producer} from "
            f"offset {self.first} on, which the marker at offset {self.marker} aborts"
        )
        if not self.is_copied:
            return f"{what}; the next attempt leaves it out"
        ways = ways_out(self, EMPTY)
        again = f", or let another replica lead the partition, and {ways}" if ways else ""
        return (
            f"{what}. Its records before offset {self.until} are copied; the next window copies no more of it. Keep these "
            f"copies{again}"
        )


class TopicRecreated(PartitionError):
    """A topic of the same name, but not the one that was replicated until now.

    Noticed by ``windows.plan`` before a window, by ``slot.attempts`` and ``slot.source`` in it.
    """

    was: str
    now: str

    def __str__(self) -> str:
        return (
            f"{self.where}: the topic was deleted and created again (topic id {self.was} before, {self.now} now); "
            f"{ways_out(self, (BEGINNING, '--start-again'), EMPTY)}; or exclude the topic"
        )


class UnexpectedHole(PartitionError):
    """Offsets without records in a topic that is not compacted (invariant E)."""

    says = (
        "{0.where}: offsets {0.first} to {0.last} hold nothing although the topic's cleanup.policy has no "
        "'compact', so records may be lost; if it was compacted once, name it in topics.compacted"
    )
    first: int
    last: int

    bad_from = "first"


class ReadBackDiffers(CopyError):
    """The target's records differ from those that were fetched (invariant D). The transaction was aborted."""

    says = (
        "{0.where}: offsets {0.first} to {0.last} differ from what cluster {0.target!r} holds in "
        "{0.remote} at offset {0.target_offset}: {0.difference}; nothing of it was committed"
    )
    first: int
    last: int
    target_offset: int
    difference: str

    bad_from = "first"


class ForeignRecords(CopyError):
    """Another writer writes to the remote topic."""

    first: int
    last: int

    writer = ""  # who of MirrorMaker 2 was seen, set by ``of_writer``

    def __str__(self) -> str:
        return (
            f"{self.where}: cluster {self.target!r} holds records in {self.remote} at offsets {self.first} to {self.last} that "
            f"this flow did not write{seen(self.writer)}; if MirrorMaker 2 did, "
            f"{take_over_command(self)}; stop any other writer, then "
            f"{ways_out(self, ('continue after them', '--accept-loss'), EMPTY)}"
        )


class TargetTruncated(CopyError):
    """The remote topic ends below what was committed to it, or is another topic by now."""

    expected_end: int
    end: int

    def __str__(self) -> str:
        accept = ("continue, and record the missing records as lost", "--accept-loss")
        return (
            f"{self.where}: {self.remote} on cluster {self.target!r} holds what was written up to offset {self.end} only, "
            f"{self.expected_end} was committed: it was truncated, or deleted and created again; "
            f"{ways_out(self, ('copy everything again', '--start-again'), accept)}"
        )


class TargetUnavailable(CopyError, transient=True):
    """A partition of the target that takes no records now; it alone is left out."""

    says = "{0.where}: {0.remote} on cluster {0.target!r} takes no records: {0.reason}; the next window tries again"
    reason: str


class PartitionUnavailable(PartitionError, transient=True):
    """A partition that could not be read or written in the time of the window; the next one tries again."""

    says = "{0.where}: not finished in this window: {0.reason}"
    reason: str


class PartitionFailed(PartitionError):
    """A partition of a slot that could not continue, for a reason that does not pass by itself."""

    says = "{0.where}: not finished: {0.reason}"
    reason: str


class AccessLost(PartitionError):
    """A topic of either side that this user may not read or write (any more)."""

    denying: str
    denied_topic: str
    operation: str

    def __str__(self) -> str:
        return (
            f"{self.where}: cluster {self.denying!r} does not let this user {self.operation.lower()} topic "
            f"{self.denied_topic!r}; give it the operation {self.operation} again (kafka-acls.sh): the next window "
            "continues from the committed progress"
        )


class SlotFenced(AirmirrorError):
    """A later window has taken over; this one must not write any more (invariant B). ``by``: empty if its lease is released."""

    flow: str
    window: str
    by: str

    def __str__(self) -> str:
        if not self.by:
            return f"flow {self.flow!r}: the lease of window {self.window!r} is released; the next continues from its progress"
        return f"flow {self.flow!r}: window {self.window!r} was fenced by window {self.by!r}, which continues from its progress"


class InternalTopicUnfit(AirmirrorError, bad_input=True):
    """An internal topic that exists with a configuration that would lose what it must keep."""

    says = "cluster {0.cluster!r}: topic {0.topic!r} {0.reason}"
    cluster: str
    topic: str
    reason: str

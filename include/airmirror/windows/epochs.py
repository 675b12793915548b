"""The leader epochs of accounts that no slot has made: as leaders tell them, before a log is read or a position decided.

By them a later window notices that a log was cut since, also one that has grown again (``windows.diverged``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from airmirror.clusters.protocol.epochs import EpochEnd, epoch_before, epochs_since
from airmirror.partitions import TopicPartition
from airmirror.slot.account import Account
from airmirror.windows.mirror import Mirror


@dataclass(frozen=True)
class Epochs:
    """The epochs of a partition's two logs, in their order; empty: nothing is known of that log."""

    source: Sequence[EpochEnd] = ()
    target: Sequence[EpochEnd] = ()

    def noted(self, accounts: Iterable[Account]) -> tuple[Account, ...]:
        """Return the accounts with the epochs of what they end with on both sides.

        On the target only where nothing was copied: an account that has one counts as read back, and it was not.
        """
        found = tuple(accounts)
        for account in found:
            account.leader_epoch = epoch_before(self.source, account.end)
            account.target_epoch = -1 if account.copied else epoch_before(self.target, account.target_end)
        return found


def look_at_epochs(
    mirror: Mirror, starts: Mapping[TopicPartition, int], remote: Mapping[TopicPartition, tuple[TopicPartition, int]]
) -> dict[TopicPartition, Epochs]:
    """Ask for the epochs of partitions from offsets of the source on, and of the remote partitions that some of them have from
    offsets of the target on. Raises what ``epochs_since`` does."""
    ours = epochs_since(mirror.source, starts)
    theirs = epochs_since(mirror.target, dict(remote.values()))
    return {key: Epochs(ours[key], theirs[remote[key][0]] if key in remote else ()) for key in starts}

"""The faults that explain errors of windows: an error that no fault of its seed explains is a failure of the seed."""

from __future__ import annotations

from collections.abc import Collection

from chaos.plan import (
    ACCESS,
    APART,
    CLOCKS,
    DISKS,
    IDS,
    MOVES,
    NODES,
    PROXIED,
    SPARK,
    STARVED,
    STATE,
    UPGRADES,
    WINDOWS,
    WITHHELD,
)

AWAY = NODES | PROXIED | STARVED | MOVES | APART | DISKS | UPGRADES  # somebody does not answer, or refuses
STANDS_STILL = frozenset({"stop_window", "stop_slot", "stop_node"})
DELETED = frozenset({"delete_progress", "delete_mappings"})
ENDS = frozenset({"kill_window", "kill_slot", "kill_spark", "kill_worker", "second_window"})

EXPLAINED: dict[str, Collection[str]] = {
    **dict.fromkeys(
        (
            "BrokerUnreachable",
            "ClusterUnreachable",
            "ClusterNotAnswering",
            "CoordinatorNotAvailable",
            "LeaderNotAvailable",
            "PartitionMoved",
            "TransactionBusy",
            "FenceStuck",
            "AppendFailed",
            "FetchFailed",
            "RecordsNotWritten",
        ),
        AWAY,
    ),
    "TransactionFailed": AWAY | ACCESS | STATE | IDS,
    "ProducerFenced": AWAY | WINDOWS | SPARK | IDS,
    "LastStableOffsetStuck": AWAY | WINDOWS | SPARK,
    "PartitionUnavailable": AWAY | ACCESS | STATE | WITHHELD,
    "RecordsWithheld": WITHHELD,
    "TargetUnavailable": AWAY | ACCESS,
    "ReadBackTooSlow": AWAY | STANDS_STILL | WITHHELD,
    "AccessLost": ACCESS,
    "FlowBusy": ENDS | STANDS_STILL | STATE | CLOCKS,
    "SlotFenced": ENDS | STANDS_STILL,
    "SlotsDied": WINDOWS,
    "SparkJobFailed": SPARK | WINDOWS,
    "SparkUnavailable": SPARK,
    "TopicNotFound": DELETED,
    "TopicCreationFailed": DELETED | AWAY,  # it is made again while it is being deleted
    "LedgerBegunAnew": STATE,
    "LedgerUnavailable": STATE,
}


def unexplained(errors: Collection[str], happened: Collection[str]) -> list[str]:
    """The names of those errors that none of the faults that happened explains."""
    return sorted(name for name in set(errors) if not set(happened) & set(EXPLAINED.get(name, ())))


LATE = frozenset({"kill_driver", "end_driver", "second_driver"})  # another one has done it, or a part of it
NO_SOURCE = frozenset({"refuse", "kill_node", "stop_node", "cut", "lose", "fill_disk"})

OF_COMMANDS: dict[str, Collection[str]] = {
    "SourceGone": NO_SOURCE,
    "SourceAnswers": {"second_driver"},  # it fails over as before, and the source is back
    "RehearsalNeedsSource": NO_SOURCE,
    "SlotFenced": LATE | {"window"},
    "FlowFrozen": LATE,
    "FreezeFirst": LATE,  # the other one has undone it
    "ReturnFirst": {"second_driver"},
    "ReturnRefused": {"second_driver"},  # the other one has failed back, so that nothing is frozen
    "ConsumersNotCutOver": {"second_driver"},
    "GroupsNotBack": {"second_driver"},
    "CannotUndo": {"second_driver"},  # the other one has done it again
    "NotFrozen": {"second_driver"},
}


def of_commands(error: str) -> Collection[str]:
    """The faults that explain a final error of a command of that name."""
    return OF_COMMANDS.get(error, ())

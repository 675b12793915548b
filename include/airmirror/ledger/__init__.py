"""The ledger: the SQL mirror of what a flow's internal topics say, for reading. Nothing is decided from it alone."""

from airmirror.ledger.errors import LedgerBegunAnew, LedgerTooNew, LedgerUnavailable, LedgerUrlInvalid
from airmirror.ledger.groups import GroupLag, GroupOffset
from airmirror.ledger.ledger import FlowLedger, Ledger, WindowRow
from airmirror.ledger.metrics import FlowMetric, PartitionMetrics

__all__ = [
    "FlowLedger",
    "FlowMetric",
    "GroupLag",
    "GroupOffset",
    "Ledger",
    "LedgerBegunAnew",
    "LedgerTooNew",
    "LedgerUnavailable",
    "LedgerUrlInvalid",
    "PartitionMetrics",
    "WindowRow",
]

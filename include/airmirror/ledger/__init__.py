"""The ledger: the SQL mirror of what a flow's internal topics say, for reading. Nothing is decided from it alone."""

from airmirror.ledger.errors import FreezeLost, LedgerBegunAnew, LedgerUnavailable
from airmirror.ledger.flow_ledger import FlowLedger
from airmirror.ledger.groups import GroupLag, GroupOffset
from airmirror.ledger.ledger import Ledger
from airmirror.ledger.metrics import FlowMetric, PartitionMetrics
from airmirror.ledger.outcomes import Failure, WindowEnd
from airmirror.ledger.queries import WindowRow

__all__ = [
    "Failure",
    "FlowLedger",
    "FlowMetric",
    "FreezeLost",
    "GroupLag",
    "GroupOffset",
    "Ledger",
    "LedgerBegunAnew",
    "LedgerUnavailable",
    "PartitionMetrics",
    "WindowEnd",
    "WindowRow",
]

"""The ledger: the SQL mirror of what a flow's internal topics say, for reading. Nothing is decided from it alone."""

from airmirror.ledger.ledger import FlowLedger, Ledger, LedgerUnavailable, WindowRow

__all__ = ["FlowLedger", "Ledger", "LedgerUnavailable", "WindowRow"]

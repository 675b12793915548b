"""The ledger: a database for all flows."""

from __future__ import annotations

from contextlib import AbstractContextManager

import sqlalchemy as sql

from airmirror.ledger import groups, schema
from airmirror.ledger.database import connect, objects_of, reading, shown
from airmirror.ledger.flow_ledger import FlowLedger
from airmirror.ledger.groups import CheckpointPlace, GroupLag, ReadAgain
from airmirror.ledger.metrics import FlowMetric, PartitionMetrics
from airmirror.ledger.tables import checkpoints, control, flow_metrics, partition_metrics
from airmirror.wire.mappings import Decision, Hold


class Ledger(AbstractContextManager["Ledger"]):
    """A ledger at a SQLAlchemy URL, its schema made where there is none; a context manager that closes it.

    Raises LedgerUrlInvalid, LedgerUnavailable, LedgerOfOtherVersion.
    """

    def __init__(self, url: str) -> None:
        self.engine = connect(url)
        self.url = shown(self.engine.url)
        try:
            schema.make_or_check(self.engine)
        except BaseException:
            self.close()
            raise

    def flow(self, name: str) -> FlowLedger:
        return FlowLedger(self.engine, name)

    def partition_metrics(self) -> list[PartitionMetrics]:
        """Every flow's partitions, as they are shown."""
        with reading(self.engine) as connection:
            return objects_of(connection, partition_metrics, PartitionMetrics)

    def holds(self) -> list[tuple[str, Hold]]:
        """Return the holds of every flow, each with its flow."""
        with reading(self.engine) as connection:
            flows = connection.scalars(
                sql.select(control.c.flow).where(control.c.kind.in_((Hold.kind, Decision.kind))).distinct()
            ).all()
        whole = sorted(flow for flow in flows if " " not in flow)  # of a part no gate judges, and no command releases
        return [(flow, hold) for flow in whole for _, hold in sorted(self.flow(flow).holds().items())]

    def flow_metrics(self) -> list[FlowMetric]:
        """Every flow's own numbers, as they are shown."""
        with reading(self.engine) as connection:
            return objects_of(connection, flow_metrics, FlowMetric)

    def group_lags(self) -> list[GroupLag]:
        """Return the lags of the consumer groups of every flow's source when they were last read."""
        with reading(self.engine) as connection:
            return groups.latest_group_lags(connection)

    def read_again(self) -> list[ReadAgain]:
        """Records that groups would read again if they failed over now, as the last runs found it."""
        with reading(self.engine) as connection:
            return groups.read_again(connection)

    def checkpoint_places(self) -> list[CheckpointPlace]:
        """Return where every flow has written checkpoints."""
        with reading(self.engine) as connection:
            return objects_of(connection, checkpoints, CheckpointPlace)

    def close(self) -> None:
        self.engine.dispose()

    def __exit__(self, *_: object) -> None:
        self.close()

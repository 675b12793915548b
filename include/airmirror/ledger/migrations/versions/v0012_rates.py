"""What a partition's rate is told from: its counters some time before."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    with op.batch_alter_table("partition_metrics") as table:
        for name in ("earlier_ms", "earlier_records", "earlier_bytes"):
            table.add_column(Column(name, BigInteger))

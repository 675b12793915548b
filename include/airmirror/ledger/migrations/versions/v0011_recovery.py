"""What a recovery point is made of: the newest verified record of a partition, and when its source was last seen."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    with op.batch_alter_table("partition_metrics") as table:
        for name in ("verified_record_ms", "seen_ms"):
            table.add_column(Column(name, BigInteger))

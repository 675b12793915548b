"""What a consumer group would read again on the other cluster, in records and milliseconds."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    with op.batch_alter_table("group_lags") as table:
        for name in ("again", "again_ms"):
            table.add_column(Column(name, BigInteger))

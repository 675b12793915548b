"""The kind of a consumer group, as its cluster listed it, and when a checkpoint was written."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, String

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    with op.batch_alter_table("group_lags") as table:
        table.add_column(Column("kind", String(16)))
    with op.batch_alter_table("checkpoints") as table:
        table.add_column(Column("written_ms", BigInteger))

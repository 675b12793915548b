"""Metrics: how old records were when they were read and committed, and the lags of consumer groups."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, String

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    with op.batch_alter_table("partition_metrics") as table:
        for name in ("latency_most_ms", "age_ms", "age_most_ms"):
            table.add_column(Column(name, BigInteger))
    op.create_table(
        "group_lags",
        Column("flow", String(512), primary_key=True),
        Column("group", String(512), primary_key=True),
        Column("topic", String(249), primary_key=True),
        Column("partition", Integer, primary_key=True),
        Column("cluster", String(512), nullable=False),
        Column("position", BigInteger, nullable=False),
        Column("lag", BigInteger, nullable=False),
        Column("lag_ms", BigInteger),
        Column("time_ms", BigInteger, nullable=False),
    )

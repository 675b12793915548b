"""The numbers of flows over time, for the console's plots."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, String

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "samples",
        Column("flow", String(512), primary_key=True),
        Column("time_ms", BigInteger, primary_key=True),
        Column("records", BigInteger, nullable=False),
        Column("bytes", BigInteger, nullable=False),
        Column("lag_records", BigInteger),
        Column("lag_ms", BigInteger),
        Column("latency_ms", BigInteger),
        Column("latency_most_ms", BigInteger),
        Column("verified_ms", BigInteger),
    )

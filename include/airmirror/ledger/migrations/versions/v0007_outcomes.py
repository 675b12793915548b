"""The ends of windows, and the failures since, for ``status``."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Integer, String, Text

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "window_ends",
        Column("flow", String(512), primary_key=True),
        Column("window", String(512), primary_key=True),
        Column("time_ms", BigInteger, nullable=False),
        Column("failed", Integer, nullable=False),
        Column("error", Text, nullable=False),
    )
    op.create_table(
        "failures",
        Column("flow", String(512), primary_key=True),
        Column("topic", String(249), primary_key=True),
        Column("partition", Integer, primary_key=True),
        Column("since_ms", BigInteger, nullable=False),
        Column("last_ms", BigInteger, nullable=False),
        Column("windows", Integer, nullable=False),
        Column("first_window", String(512), nullable=False),
        Column("window", String(512), nullable=False),
        Column("transient", Boolean, nullable=False),
        Column("error", Text, nullable=False),
    )

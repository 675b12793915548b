"""Questions to people in Airflow, and their answers."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, String, Text

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "approvals",
        Column("flow", String(512), primary_key=True),
        Column("run", String(512), primary_key=True),
        Column("task", String(250), primary_key=True),
        Column("scope", String(512), nullable=False),
        Column("about", Text, nullable=False),
        Column("asked_ms", BigInteger, nullable=False),
        Column("option", Text),
        Column("reason", Text),
        Column("user", Text),
        Column("by", Text),
        Column("answered_ms", BigInteger),
    )

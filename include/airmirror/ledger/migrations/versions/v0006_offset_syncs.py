"""The position up to which offset syncs are written, so that their topic is not read from its beginning each time."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, String

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "offset_syncs",
        Column("flow", String(512), primary_key=True),
        Column("topic", String(249), primary_key=True),
        Column("partition", Integer, primary_key=True),
        Column("upstream", BigInteger, nullable=False),
    )

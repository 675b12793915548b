"""The last record that was read of a topic and the epoch of its leader, so that a log that was cut and grew again is noticed."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("scanned", Column("last_offset", BigInteger))
    op.add_column("scanned", Column("last_epoch", Integer))

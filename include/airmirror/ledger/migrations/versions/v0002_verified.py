"""Verified offsets in a table of their own, and the newest segments' ranges: what is unverified is one query.

The latest windows are found in an index. What was read from the segment topics is forgotten: the next window reads it.
"""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op
from sqlalchemy import BigInteger, Column, Integer, LargeBinary, String

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for name in ("control", "segments"):
        op.execute(sql.table(name).delete())
    scanned = sql.table("scanned", sql.column("topic", String))
    op.execute(scanned.delete().where(scanned.c.topic.not_like("mm2-offsets.%")))
    op.drop_index("segments_of_window", "segments")
    op.create_index("segments_of_window", "segments", ["flow", "window", "time_ms"])
    op.drop_table("newest")
    for name, own in (("newest", ("source_start", "source_end")), ("verified", ("source_offset",))):
        op.create_table(
            name,
            Column("flow", String(512), primary_key=True),
            Column("topic", String(249), primary_key=True),
            Column("partition", Integer, primary_key=True),
            Column("source_topic_id", String(36), nullable=False),
            *(Column(column, BigInteger, nullable=False) for column in own),
            Column("log_offset", BigInteger, nullable=False),
            Column("key", LargeBinary, nullable=False),
            Column("value", LargeBinary, nullable=False),
        )

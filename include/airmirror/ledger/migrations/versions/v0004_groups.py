"""Segments found by the position they translate, checkpoints, and what became of consumer groups.

What was read from the segment topics is forgotten: the next window reads it.
"""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Integer, String, Text

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for name in ("control", "verified", "newest", "segments"):
        op.execute(sql.table(name).delete())
    scanned = sql.table("scanned", sql.column("topic", String))
    op.execute(scanned.delete().where(scanned.c.topic.not_like("mm2-offsets.%")))
    with op.batch_alter_table("segments") as table:
        table.add_column(Column("copied_end", BigInteger))
        table.add_column(Column("target_end", BigInteger, nullable=False))
    for name, column in (("segments_by_source", "copied_end"), ("segments_by_target", "target_end")):
        op.create_index(name, "segments", ["flow", "topic", "partition", "source_topic_id", column])
    op.create_table(
        "checkpoints",
        *_of_group(),
        Column("upstream", BigInteger, nullable=False),
        Column("downstream", BigInteger, nullable=False),
        Column("metadata", Text, nullable=False),
    )
    op.create_table(
        "group_offsets",
        *_of_group(),
        Column("remote_topic", String(249), nullable=False),
        Column("position", BigInteger, nullable=False),
        Column("upstream", BigInteger),
        Column("downstream", BigInteger),
        Column("exact", Boolean),
        Column("again", BigInteger),
        Column("on_target", BigInteger),
        Column("reason", String(512), nullable=False),
        Column("time_ms", BigInteger, nullable=False),
    )
    op.create_table(
        "rounds",
        Column("flow", String(512), primary_key=True),
        Column("task", String(64), primary_key=True),
        Column("time_ms", BigInteger, nullable=False),
    )


def _of_group() -> list[Column[object]]:
    return [
        Column("flow", String(512), primary_key=True),
        Column("group", String(512), primary_key=True),
        Column("topic", String(249), primary_key=True),
        Column("partition", Integer, primary_key=True),
    ]

"""Metrics: a row a partition, and a flow's own."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import BigInteger, Column, Double, Integer, String

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    def number(name: str) -> Column[Any]:
        return Column(name, BigInteger, nullable=False)

    op.create_table(
        "partition_metrics",
        Column("flow", String(512), primary_key=True),
        Column("topic", String(249), primary_key=True),
        Column("partition", Integer, primary_key=True),
        Column("remote_topic", String(249), nullable=False),
        Column("source_topic_id", String(36), nullable=False),
        *map(number, ("counted_end", "newest_end", "records", "bytes", "newest_ms", "latency_ms", "verified_ms")),
        *map(number, ("high_watermark", "lag_records")),
    )
    op.create_table(
        "flow_metrics",
        Column("flow", String(512), primary_key=True),
        Column("name", String(64), primary_key=True),
        Column("label", String(64), primary_key=True),
        Column("value", Double, nullable=False),
    )

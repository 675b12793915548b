"""The first tables. They may be there already: ledgers were made without a version at first."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, LargeBinary, String

revision = "0001"
down_revision = None


def upgrade() -> None:
    def table(name: str, *columns: Column[Any]) -> None:
        op.create_table(name, Column("flow", String(512), primary_key=True), *columns, if_not_exists=True)

    def of_partition() -> tuple[Column[Any], ...]:
        return Column("topic", String(249), primary_key=True), Column("partition", Integer, primary_key=True)

    def number(name: str) -> Column[Any]:
        return Column(name, BigInteger, nullable=False)

    def record() -> tuple[Column[Any], ...]:
        return Column("key", LargeBinary, nullable=False), Column("value", LargeBinary, nullable=False)

    topic_id = Column("topic_id", String(36), nullable=False)
    table("scanned", *of_partition(), topic_id, number("next_offset"))
    table("progress", *of_partition(), number("source_offset"))
    table(
        "segments",
        *of_partition(),
        Column("source_topic_id", String(36), primary_key=True),
        Column("source_start", BigInteger, primary_key=True),
        number("source_end"),
        number("log_offset"),
        Column("window", String(512), nullable=False),
        number("time_ms"),
        number("copied"),
        number("bytes"),
        *record(),
    )
    op.create_index("segments_of_window", "segments", ["flow", "window"], if_not_exists=True)
    table("newest", *of_partition(), number("log_offset"), *record())
    table(
        "control",
        Column("key", LargeBinary(1024), primary_key=True),
        Column("kind", Integer, nullable=False),
        number("log_offset"),
        number("timestamp"),
        Column("value", LargeBinary, nullable=False),
    )

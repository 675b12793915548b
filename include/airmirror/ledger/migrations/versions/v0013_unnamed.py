"""No rows of a flow without a name: commands without ``--flow`` once wrote what they had read under "", where nobody looks."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0013"
down_revision = "0012"

TABLES = (
    "scanned",
    "progress",
    "segments",
    "newest",
    "verified",
    "control",
    "partition_metrics",
    "flow_metrics",
    "offset_syncs",
    "checkpoints",
    "group_offsets",
    "group_lags",
    "rounds",
    "window_ends",
    "failures",
    "samples",
)


def upgrade() -> None:
    flow = sql.column("flow", sql.String)
    for name in TABLES:  # its parts begin with a blank, as no flow's name does
        op.execute(sql.delete(sql.table(name)).where((flow == "") | flow.like(" %")))

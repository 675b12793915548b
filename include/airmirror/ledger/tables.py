"""The ledger's tables. Every row belongs to a flow and was read from one of its internal topics, those of OWN excepted.

A change here is a new version of the schema (``schema.VERSION``).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, LargeBinary, MetaData, String, Table, Text
from sqlalchemy.schema import SchemaItem

from airmirror.naming.internal import is_mapping_topic, is_progress_topic

metadata = MetaData()


def table(name: str, *columns: SchemaItem) -> Table:
    return Table(name, metadata, *columns)


def _flow() -> Column[str]:
    return Column("flow", String(512), primary_key=True)


def _of_partition(*group: str) -> list[Column[Any]]:
    """The columns that tell a partition, or one of a group."""
    groups = [Column(name, String(512), primary_key=True) for name in group]
    topic = Column("topic", String(249), primary_key=True)
    return [_flow(), *groups, topic, Column("partition", Integer, primary_key=True)]


def _numbers(names: str, *, null: bool = False) -> list[Column[int]]:
    return [Column(name, BigInteger, nullable=null) for name in names.split()]


def _bytes(names: str) -> list[Column[bytes]]:
    return [Column(name, LargeBinary, nullable=False) for name in names.split()]


# How far each internal topic was read: the next offset; the last record that was read and the epoch of its leader.
scanned = table(
    "scanned",
    *_of_partition(),
    Column("topic_id", String(36), nullable=False),
    Column("next_offset", BigInteger, nullable=False),
    Column("last_offset", BigInteger),
    Column("last_epoch", Integer),
)

# MirrorMaker 2's progress; of another name of its connector with a negative partition (loading.other_connector).
progress = table("progress", *_of_partition(), *_numbers("source_offset"))

mappings = table(
    "mappings",
    *_of_partition(),
    Column("source_topic_id", String(36), primary_key=True),
    Column("source_start", BigInteger, primary_key=True),
    Column("source_end", BigInteger, nullable=False),
    Column("log_offset", BigInteger, nullable=False),  # in the mapping topic
    Column("window", String(512), nullable=False),
    *_numbers("time_ms copied bytes"),
    *_bytes("key value"),  # the record itself, as it lies in the topic
    Column("copied_end", BigInteger),  # the source offset after the last copied one; null where nothing was copied
    Column("target_end", BigInteger, nullable=False),
    Index("mappings_of_window", "flow", "window", "time_ms"),
    Index("mappings_by_source", "flow", "topic", "partition", "source_topic_id", "copied_end"),
    Index("mappings_by_target", "flow", "topic", "partition", "source_topic_id", "target_end"),
)

# The newest mapping of each partition, so that nothing must be searched for it.
newest = table(
    "newest",
    *_of_partition(),
    Column("source_topic_id", String(36), nullable=False),
    *_numbers("source_start source_end log_offset"),
    *_bytes("key value"),
)

# The verified offset of each partition.
verified = table(
    "verified",
    *_of_partition(),
    Column("source_topic_id", String(36), nullable=False),
    *_numbers("source_offset log_offset"),
    *_bytes("key value"),
)

# Leases, holds and the flow's identity: one row a key.
control = table(
    "control",
    _flow(),
    Column("key", LargeBinary(1024), primary_key=True),
    Column("kind", Integer, nullable=False),
    *_numbers("log_offset timestamp"),
    Column("value", LargeBinary, nullable=False),
)

# Numbers to be shown, of a partition: counted up to `counted_end` (a source offset); times in epoch milliseconds.
partition_metrics = table(
    "partition_metrics",
    *_of_partition(),
    Column("remote_topic", String(249), nullable=False),
    Column("source_topic_id", String(36), nullable=False),
    *_numbers("counted_end newest_end records bytes newest_ms latency_ms verified_ms high_watermark lag_records"),
    Column("latency_most_ms", BigInteger),  # null: the newest mapping does not tell
    *_numbers("age_ms age_most_ms", null=True),
    Column("verified_record_ms", BigInteger),  # the timestamp of the newest record that is verified
    Column("seen_ms", BigInteger),  # when the high watermark was read; null: when the flow last read all of them
    Column("earlier_ms", BigInteger),  # the counters as they were then, for a rate
    *_numbers("earlier_records earlier_bytes", null=True),
)

# Numbers to be shown, of a whole flow: counters and gauges by name, each of what `label` says.
flow_metrics = table(
    "flow_metrics",
    _flow(),
    Column("name", String(64), primary_key=True),
    Column("label", String(64), primary_key=True),
    Column("value", Double, nullable=False),
)

# The last of MirrorMaker 2's offset syncs of each partition. ``topic`` is the source's name.
offset_syncs = table("offset_syncs", *_of_partition(), *_numbers("upstream"))

# MirrorMaker 2's checkpoints as they lie on the target: the last of each key. ``topic`` is the target's name.
checkpoints = table(
    "checkpoints",
    *_of_partition("group"),
    *_numbers("upstream downstream"),
    Column("metadata", Text, nullable=False),
    Column("written_ms", BigInteger),
)

# Where the last run of sync_group_offsets saw each group, and what it did or why not. ``topic`` is the source's name.
group_offsets = table(
    "group_offsets",
    *_of_partition("group"),
    Column("remote_topic", String(249), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("upstream", BigInteger),  # the position that was translated, and its translation
    Column("downstream", BigInteger),
    Column("exact", Boolean),
    *_numbers("again on_target", null=True),
    Column("reason", String(512), nullable=False),  # empty: the group was moved
    Column("time_ms", BigInteger, nullable=False),
)

# The positions of the source's groups in what the flow replicates when they were last read, on ``cluster``; lags in records and
# milliseconds, null where the next record's time is not known; ``again``: what would be read again on the other cluster.
group_lags = table(
    "group_lags",
    *_of_partition("group"),
    Column("cluster", String(512), nullable=False),
    *_numbers("position lag"),
    *_numbers("lag_ms again again_ms", null=True),
    Column("time_ms", BigInteger, nullable=False),
    Column("kind", String(16)),
)

# When a task of the flow with an interval of its own was last done, and its own topics were last read (scanning.READ).
post_window_tasks = table(
    "post_window_tasks",
    _flow(),
    Column("task", String(64), primary_key=True),
    Column("time_ms", BigInteger, nullable=False),
)

# How the last windows that did something ended: in how many partitions they failed, or the error that ended them.
window_ends = table(
    "window_ends",
    _flow(),
    Column("window", String(512), primary_key=True),
    Column("time_ms", BigInteger, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("error", Text, nullable=False),  # empty: it did not end with one
)

# What has failed in every window that tried it, since when; without a topic (partition -1): whole windows.
failures = table(
    "failures",
    *_of_partition(),
    *_numbers("since_ms last_ms"),
    Column("windows", Integer, nullable=False),
    Column("first_window", String(512), nullable=False),
    Column("window", String(512), nullable=False),
    Column("transient", Boolean, nullable=False),
    Column("error", Text, nullable=False),
)

# The numbers of a flow over time, for plots: what its windows and gates measured, when. Counters as they were; lags are null
# where only a gate judged (and seconds where no time is known), latencies are of what was committed since the sample before.
samples = table(
    "samples",
    _flow(),
    Column("time_ms", BigInteger, primary_key=True),
    *_numbers("records bytes"),
    *_numbers("lag_records lag_ms latency_ms latency_most_ms", null=True),
    Column("verified_ms", BigInteger),  # when the last window had ended that was verified as a whole
)

# What people are asked by a task of a run of Airmirror's DAGs in Airflow, and have answered. ``run``: the DAG's id and the run's.
approvals = table(
    "approvals",
    _flow(),
    Column("run", String(512), primary_key=True),
    Column("task", String(250), primary_key=True),
    Column("scope", String(512), nullable=False),  # an answer takes the place of those of other runs in it
    Column("about", Text, nullable=False),  # what it is for, as JSON
    Column("asked_ms", BigInteger, nullable=False),
    Column("option", Text),  # null, and all that follow: no answer yet
    *(Column(name, Text) for name in ("reason", "user", "by")),
    Column("answered_ms", BigInteger),
)

# The files of the pages that tasks have made (pages.py). ``flow``: of a comparison its name.
pages = table(
    "pages",
    _flow(),
    Column("kind", String(512), primary_key=True),
    Column("name", String(512), primary_key=True),
    Column("time_ms", BigInteger, nullable=False),  # of all files of a page the same
    Column("content", LargeBinary, nullable=False),
)

# What nothing but the ledger knows and a rebuild leaves as it is: no internal topic has the errors of windows, lags or pages.
KEPT = (window_ends, failures, samples, approvals, pages)

# What is not read from the internal topics, and so not the same after a rebuild.
OWN = (partition_metrics, flow_metrics, group_offsets, group_lags, post_window_tasks, *KEPT)

# What is read when a run of a task needs it, and so not by a rebuild.
LATER = (checkpoints, offset_syncs)


def tables_of(topic: str) -> tuple[Table, ...]:
    """The tables that are read from an internal topic: mappings, ``mm2-offsets``, ``mm2-offset-syncs``, or checkpoints."""
    if is_progress_topic(topic):
        return (progress,)
    if topic.startswith("mm2-offset-syncs"):
        return (offset_syncs,)
    return (mappings, newest, verified, control) if is_mapping_topic(topic) else (checkpoints,)

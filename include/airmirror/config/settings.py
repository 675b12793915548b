"""A flow's settings as typed values, read once: a field for each key of the table that is read after the configuration is loaded.

A field has its key's name with underscores. Which keys a flow's topics, clusters and window are made from: ``resolve.flow``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from airmirror.config.keys import KEYS, Key, KeyType
from airmirror.config.values import as_boolean, as_integer, as_list, as_seconds


@dataclass(frozen=True)
class Settings:
    """What counts for a flow; the table's default where nothing is set, and None (of a list: nothing) where there is none."""

    admin_timeout_ms: int
    aggregate: bool
    audit_schedule: str
    backfill_into_suffix: str | None
    checkpoints_topic_replication_factor: int
    config_properties_exclude: tuple[str, ...]
    console_records_enabled: bool
    console_records_mask: tuple[str, ...]
    dags: tuple[str, ...]
    decide_users: tuple[str, ...]
    emit_checkpoints_enabled: bool
    emit_checkpoints_interval_seconds: int
    emit_heartbeats_enabled: bool
    emit_heartbeats_interval_seconds: int
    emit_offset_syncs_enabled: bool
    equal_cluster_ids_allowed: bool
    errors_deadletterqueue_topic_name: str
    errors_tolerance: str
    failback_users: tuple[str, ...]
    failover_quiet_ms: int
    failover_rehearsal_records: int
    failover_rehearsal_schedule: str | None
    failover_users: tuple[str, ...]
    groups: tuple[str, ...]
    groups_exclude: tuple[str, ...]
    handback_users: tuple[str, ...]
    heartbeats_replication_enabled: bool
    heartbeats_topic_replication_factor: int
    migration_users: tuple[str, ...]
    move_block_producers: str
    move_quiet_ms: int
    move_rehearsal_records: int
    move_rehearsal_schedule: str | None
    move_reverse: bool
    move_soak_ms: int
    offset_lag_max: int
    offset_storage_partitions: int
    offset_storage_replication_factor: int
    offset_syncs_per_window: int
    offset_syncs_topic_location: str
    offset_syncs_topic_replication_factor: int
    on_failure_notifier: str | None = field(repr=False)  # its arguments may hold a secret
    refresh_topics_enabled: bool
    refresh_topics_interval_seconds: int
    retention_days: int | None
    spark_conn_id: str
    streams_applications: tuple[str, ...]
    streams_groups_ahead_allowed: bool
    sync_group_offsets_enabled: bool
    sync_group_offsets_interval_seconds: float
    sync_topic_acls_enabled: bool
    sync_topic_acls_interval_seconds: int
    sync_topic_acls_mode: str
    sync_topic_configs_enabled: bool
    sync_topic_configs_interval_seconds: int
    takeover_connector_name: str
    takeover_offsets_topics: tuple[str, ...]
    takeover_users: tuple[str, ...]
    target_cluster_other_aliases: tuple[str, ...]
    topic_creation_enable: bool
    topics_compacted: tuple[str, ...]
    topics_log_append_time: tuple[str, ...]
    use_defaults_from: str
    window_deadline_ms: int | None
    window_idle_ms: int
    window_max_lag_blocks: str | None
    window_max_lag_records: int | None
    window_max_lag_seconds: int | None
    window_schedule: str
    window_trigger_records: int | None

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Settings:
        """From the values of keys; those that have none have the table's default. An interval below 0 switches off what it is
        of, as in MirrorMaker 2 (Scheduler.scheduleRepeating). Raises ValueError."""
        found = {each.name: typed(KEY_OF[each.name], values) for each in fields(cls)}
        off = (
            name.removesuffix("_interval_seconds")
            for name in found
            if name.endswith("_interval_seconds") and found[name] < 0
        )
        return cls(**found | {f"{name}_enabled": False for name in off})


KEY_OF = {name.replace(".", "_").replace("-", "_"): key for name, key in KEYS.items()}


def typed(key: Key, values: Mapping[str, str]) -> Any:
    """The value of a key by its type, trimmed as Kafka trims every value. Raises ValueError."""
    value = values.get(key.name, key.default)
    if key.type is KeyType.LIST:
        return as_list(value or "")
    if value is None:
        return None
    if key.type is KeyType.BOOLEAN:
        return as_boolean(value)
    if key.type in (KeyType.SHORT, KeyType.INT, KeyType.LONG):
        return as_integer(value, key.type, key.minimum)
    if key.type is KeyType.SECONDS:
        return as_seconds(value, key.minimum)
    return value.strip()

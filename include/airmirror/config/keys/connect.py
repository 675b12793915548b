"""Kafka Connect's keys, which every MirrorMaker 2 file may hold (org.apache.kafka.connect.runtime).

Airflow and Spark take the place of Connect's workers, so most of them have no effect; they are known so that an
existing file is valid and a misspelt key is found.
"""

from __future__ import annotations

from airmirror.config.keys.key import Key, Scope, Type, Use

_NO_WORKER = "there is no Connect worker, Airflow and Spark do its work"
_BYTES = "records are copied byte for byte"
_ONCE = "every window is exactly once"
_BYTE_ARRAY = "org.apache.kafka.connect.converters.ByteArrayConverter"
_JAVA_TRANSFORMS = "Java classes can't run here, and leaving them out would change the data"
_PROGRESS_NAME = "progress is kept in mm2-offsets.<source>.internal, as MirrorMaker 2 does by default"
_PLUGINS = "Connect's plugins are not loaded"

_USED = (
    Key(
        "tasks.max",
        Type.INT,
        None,
        "The most slots (Spark tasks) of a window; not set: Spark's parallelism / enabled flows, at least 1.",
        minimum=1,
    ),
    Key(
        "offset.storage.replication.factor",
        Type.SHORT,
        "3",
        "Replication factor of mm2-offsets.<source>.internal and of the segment topic on the target; "
        "-1 takes the brokers' default.",
        Scope.WORKER,
        minimum=-1,
    ),
    Key(
        "offset.storage.partitions",
        Type.INT,
        "25",
        "Partitions of mm2-offsets.<source>.internal where Airmirror creates it; -1 takes the brokers' default.",
        Scope.WORKER,
        minimum=-1,
    ),
    Key(
        "errors.tolerance",
        Type.STRING,
        "none",
        "What a record that the target does not take does: `none` fails its partition, `all` copies around it.",
        use=Use.LATER,
        values=("none", "all"),
    ),
)

_DEFAULT_ONLY = (
    Key("transforms", Type.LIST, "", "Single message transforms.", use=Use.DEFAULT_ONLY, reason=_JAVA_TRANSFORMS),
    Key("predicates", Type.LIST, "", "Predicates of transforms.", use=Use.DEFAULT_ONLY, reason=_JAVA_TRANSFORMS),
    *(
        Key(name, Type.CLASS, _BYTE_ARRAY, "Converts records.", Scope.WORKER, Use.DEFAULT_ONLY, _BYTES)
        for name in ("key.converter", "value.converter", "header.converter")
    ),
    Key(
        "offset.storage.topic",
        Type.STRING,
        "mm2-offsets.<source>.internal",
        "The topic that holds Connect's source offsets.",
        Scope.WORKER,
        Use.DEFAULT_ONLY,
        _PROGRESS_NAME,
    ),
    Key(
        "offsets.storage.topic",
        Type.STRING,
        "",
        "A connector's own topic for source offsets.",
        use=Use.DEFAULT_ONLY,
        reason=_PROGRESS_NAME,
    ),
)


def _connector(name: str, type_: Type, default: str | None, reason: str = _NO_WORKER) -> Key:
    return Key(name, type_, default, "A setting of Connect's connectors.", Scope.FLOW, Use.WITHOUT_EFFECT, reason)


def _worker(name: str, type_: Type, default: str | None, reason: str = _NO_WORKER) -> Key:
    return Key(name, type_, default, "A setting of Connect's workers.", Scope.WORKER, Use.WITHOUT_EFFECT, reason)


_CONNECTOR = (
    _connector("name", Type.STRING, None),
    _connector("connector.class", Type.STRING, None),
    _connector("connector.plugin.version", Type.STRING, None, _PLUGINS),
    _connector("key.converter.plugin.version", Type.STRING, None, _PLUGINS),
    _connector("value.converter.plugin.version", Type.STRING, None, _PLUGINS),
    _connector("header.converter.plugin.version", Type.STRING, None, _PLUGINS),
    _connector("config.action.reload", Type.STRING, "restart", "the file is read again for every window"),
    _connector("tasks.max.enforce", Type.BOOLEAN, "true"),
    _connector("errors.log.enable", Type.BOOLEAN, "false", "errors are always logged"),
    _connector("errors.log.include.messages", Type.BOOLEAN, "false", "records are never logged"),
    _connector("errors.retry.timeout", Type.LONG, "0", "Spark and Airflow retry"),
    _connector("errors.retry.delay.max.ms", Type.LONG, "60000", "Spark and Airflow retry"),
    _connector("exactly.once.support", Type.STRING, "requested", _ONCE),
    _connector("transaction.boundary", Type.STRING, "poll", "see window.commit.bytes and window.commit.ms"),
    _connector("transaction.boundary.interval.ms", Type.LONG, None, "see window.commit.ms"),
    _connector("topic.creation.groups", Type.LIST, "", "remote topics are created before records are copied"),
    _connector("task.index", Type.INT, None),
    _connector("task.assigned.partitions", Type.LIST, None),
    _connector("task.assigned.groups", Type.LIST, None),
)

_WORKER = (
    _worker("exactly.once.source.support", Type.STRING, "disabled", _ONCE),
    _worker("group.id", Type.STRING, None),
    _worker("config.storage.topic", Type.STRING, None),
    _worker("config.storage.replication.factor", Type.SHORT, "3"),
    _worker("status.storage.topic", Type.STRING, None),
    _worker("status.storage.replication.factor", Type.SHORT, "3"),
    _worker("status.storage.partitions", Type.INT, "5"),
    _worker("offset.flush.interval.ms", Type.LONG, "60000", "progress is committed with the records"),
    _worker("offset.flush.timeout.ms", Type.LONG, "5000", "progress is committed with the records"),
    _worker("connect.protocol", Type.STRING, "sessioned"),
    _worker("connector.client.config.override.policy", Type.STRING, "All"),
    _worker("heartbeat.interval.ms", Type.INT, "3000"),
    _worker("session.timeout.ms", Type.INT, "10000"),
    _worker("rebalance.timeout.ms", Type.INT, "60000"),
    _worker("scheduled.rebalance.max.delay.ms", Type.INT, "300000"),
    _worker("inter.worker.key.generation.algorithm", Type.STRING, "HmacSHA256"),
    _worker("inter.worker.key.size", Type.INT, None),
    _worker("inter.worker.key.ttl.ms", Type.INT, "3600000"),
    _worker("inter.worker.signature.algorithm", Type.STRING, "HmacSHA256"),
    _worker("inter.worker.verification.algorithms", Type.LIST, "HmacSHA256"),
    _worker("worker.sync.timeout.ms", Type.INT, "3000"),
    _worker("worker.unsync.backoff.ms", Type.INT, "300000"),
    _worker("task.shutdown.graceful.timeout.ms", Type.LONG, "5000"),
    _worker("topic.creation.enable", Type.BOOLEAN, "true", "remote topics are created before records are copied"),
    _worker("topic.tracking.enable", Type.BOOLEAN, "true"),
    _worker("topic.tracking.allow.reset", Type.BOOLEAN, "true"),
    _worker("plugin.path", Type.LIST, None, _PLUGINS),
    _worker("plugin.discovery", Type.STRING, "hybrid_warn", _PLUGINS),
    _worker("metrics.num.samples", Type.INT, "2"),
    _worker("metrics.recording.level", Type.STRING, "INFO"),
    _worker("metrics.sample.window.ms", Type.LONG, "30000"),
    _worker("listeners", Type.LIST, "http://:8083", "Airflow's API server answers"),
    _worker("admin.listeners", Type.LIST, None, "Airflow's API server answers"),
    _worker("rest.advertised.host.name", Type.STRING, None),
    _worker("rest.advertised.port", Type.INT, None),
    _worker("rest.advertised.listener", Type.STRING, None),
    _worker("rest.extension.classes", Type.LIST, ""),
    _worker("response.http.headers.config", Type.STRING, ""),
    _worker("access.control.allow.methods", Type.STRING, ""),
    _worker("access.control.allow.origin", Type.STRING, ""),
)

KEYS = (*_USED, *_DEFAULT_ONLY, *_CONNECTOR, *_WORKER)

FAMILIES = {
    "transforms.": _JAVA_TRANSFORMS,
    "predicates.": _JAVA_TRANSFORMS,
    "key.converter.": _BYTES,
    "value.converter.": _BYTES,
    "header.converter.": _BYTES,
    "topic.creation.": "remote topics are created before records are copied",
    "listeners.https.": "Airflow's API server answers",
    "admin.listeners.https.": "Airflow's API server answers",
    "metrics.context.": "there is no JMX here",
    "config.providers.": "",
    "replication.policy.": "only a policy of your own may read it",
}
"""Keys whose names end as the user likes: prefix and why they have no effect ("" where they are used)."""

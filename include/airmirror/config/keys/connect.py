"""Kafka Connect's keys, which every MirrorMaker 2 file may hold (org.apache.kafka.connect.runtime).

Airflow and Spark take the place of Connect's workers, so most of them have no effect; they are known so that an
existing file is valid and a misspelt key is found.
"""

from __future__ import annotations

from airmirror.config.keys.key import Key, KeyScope, KeyType, Use

_NO_WORKER = "there is no Connect worker, Airflow and Spark do its work"
_BYTES = "records are copied byte for byte"
_ONCE = "every window is exactly once"
_BYTE_ARRAY = "org.apache.kafka.connect.converters.ByteArrayConverter"
_JAVA_TRANSFORMS = (
    "Java classes can't run here, and leaving them out would change the data; name topics with replication.policy.class, "
    "leave topics out with topics.exclude, change records after the copy"
)
_PROGRESS_NAME = "progress is kept in mm2-offsets.<source>.internal, as MirrorMaker 2 does by default"
_PLUGINS = "Connect's plugins are not loaded"
_NO_JMX = "there is no JMX here"

_USED = (
    Key(
        "tasks.max",
        KeyType.INT,
        None,
        "The most slots (Spark tasks) of a window; not set: Spark's parallelism / enabled flows, at least 1.",
        minimum=1,
    ),
    Key(
        "offset.storage.replication.factor",
        KeyType.SHORT,
        "3",
        "Replication factor of mm2-offsets.<source>.internal and of the mapping topic on the target; "
        "-1 takes the brokers' default.",
        KeyScope.WORKER,
        minimum=-1,
    ),
    Key(
        "offset.storage.partitions",
        KeyType.INT,
        "25",
        "Partitions of mm2-offsets.<source>.internal where Airmirror creates it; -1 takes the brokers' default.",
        KeyScope.WORKER,
        minimum=-1,
    ),
    Key(
        "topic.creation.enable",
        KeyType.BOOLEAN,
        "true",
        "Whether missing remote topics and partitions are created; false: a topic without its remote topic is refused, "
        "partitions that the remote topic lacks wait. Internal topics are created in any case.",
        KeyScope.WORKER,
    ),
    Key(
        "errors.tolerance",
        KeyType.STRING,
        "none",
        "When the target rejects a record: `none` fails its partition, `all` skips the record, "
        "declares it lost and writes it to errors.deadletterqueue.topic.name.",
        values=("none", "all"),
    ),
)

_DEFAULT_ONLY = (
    Key("transforms", KeyType.LIST, "", "Single message transforms.", use=Use.DEFAULT_ONLY, reason=_JAVA_TRANSFORMS),
    Key("predicates", KeyType.LIST, "", "Predicates of transforms.", use=Use.DEFAULT_ONLY, reason=_JAVA_TRANSFORMS),
    *(
        Key(
            name=name,
            type=KeyType.CLASS,
            default=_BYTE_ARRAY,
            doc="Converts records.",
            scope=KeyScope.WORKER,
            use=Use.DEFAULT_ONLY,
            reason=_BYTES,
        )
        for name in ("key.converter", "value.converter", "header.converter")
    ),
    Key(
        name="offset.storage.topic",
        type=KeyType.STRING,
        default="mm2-offsets.<source>.internal",
        doc="The topic that holds Connect's source offsets.",
        scope=KeyScope.WORKER,
        use=Use.DEFAULT_ONLY,
        reason=_PROGRESS_NAME,
    ),
    Key(
        "offsets.storage.topic",
        KeyType.STRING,
        "",
        "A connector's own topic for source offsets.",
        use=Use.DEFAULT_ONLY,
        reason=_PROGRESS_NAME,
    ),
)


def _connector(name: str, type_: KeyType, default: str | None, doc: str, reason: str = _NO_WORKER) -> Key:
    return Key(
        name=name, type=type_, default=default, doc=doc, scope=KeyScope.FLOW, use=Use.WITHOUT_EFFECT, reason=reason
    )


def _worker(name: str, type_: KeyType, default: str | None, doc: str, reason: str = _NO_WORKER) -> Key:
    return Key(
        name=name, type=type_, default=default, doc=doc, scope=KeyScope.WORKER, use=Use.WITHOUT_EFFECT, reason=reason
    )


_RETRY = "Spark and Airflow retry"
_RETRIES_DOC = "How long a failed operation on a record is tried again, in ms; 0: not, -1: for ever."
_CREATED = "remote topics are created before records are copied"
_COMMITTED = "progress is committed with the records"
_REST = "Airflow's API server answers"
_CORS = "A header of the REST API's answers to pages from elsewhere."
_VERSION = "Which version of a plugin to load."

_CONNECTOR = (
    _connector("name", KeyType.STRING, None, "The connector's name."),
    _connector("connector.class", KeyType.STRING, None, "The connector's Java class."),
    _connector("connector.plugin.version", KeyType.STRING, None, _VERSION, _PLUGINS),
    _connector("key.converter.plugin.version", KeyType.STRING, None, _VERSION, _PLUGINS),
    _connector("value.converter.plugin.version", KeyType.STRING, None, _VERSION, _PLUGINS),
    _connector("header.converter.plugin.version", KeyType.STRING, None, _VERSION, _PLUGINS),
    _connector(
        "config.action.reload",
        KeyType.STRING,
        "restart",
        "What happens when a config provider's value changes: `none` or `restart`.",
        "the file is read again for every window",
    ),
    _connector("tasks.max.enforce", KeyType.BOOLEAN, "true", "Fail a connector that makes more tasks than tasks.max."),
    _connector("errors.log.enable", KeyType.BOOLEAN, "false", "Log tolerated errors.", "errors are always logged"),
    _connector(
        "errors.log.include.messages",
        KeyType.BOOLEAN,
        "false",
        "Log the record of an error.",
        "records are never logged",
    ),
    _connector("errors.retry.timeout", KeyType.LONG, "0", _RETRIES_DOC, _RETRY),
    _connector("errors.retry.delay.max.ms", KeyType.LONG, "60000", "The longest pause between such attempts.", _RETRY),
    _connector(
        "exactly.once.support", KeyType.STRING, "requested", "Whether the connector must be exactly once.", _ONCE
    ),
    _connector(
        "transaction.boundary",
        KeyType.STRING,
        "poll",
        "When a transaction ends: `poll`, `interval` or `connector`.",
        "see window.commit.bytes and window.commit.ms",
    ),
    _connector(
        "transaction.boundary.interval.ms",
        KeyType.LONG,
        None,
        "With `interval`: after how many ms.",
        "see window.commit.ms",
    ),
    _connector("topic.creation.groups", KeyType.LIST, "", "Groups of rules by which topics are created.", _CREATED),
    _connector("task.index", KeyType.INT, None, "MirrorMaker 2 gives it to its tasks: a task's number."),
    _connector(
        "task.assigned.partitions", KeyType.LIST, None, "MirrorMaker 2 gives it to its tasks: their partitions."
    ),
    _connector(
        "task.assigned.groups", KeyType.LIST, None, "MirrorMaker 2 gives it to its tasks: their consumer groups."
    ),
)

_WORKER = (
    _worker(
        "exactly.once.source.support",
        KeyType.STRING,
        "disabled",
        "Whether workers write records and offsets in transactions: `disabled`, `preparing`, `enabled`.",
        _ONCE,
    ),
    _worker("group.id", KeyType.STRING, None, "The workers' group, <source>-mm2 in MirrorMaker 2."),
    _worker("config.storage.topic", KeyType.STRING, None, "The topic that holds connectors' configurations."),
    _worker("config.storage.replication.factor", KeyType.SHORT, "3", "Replication factor of that topic."),
    _worker("status.storage.topic", KeyType.STRING, None, "The topic that holds the state of connectors and tasks."),
    _worker("status.storage.replication.factor", KeyType.SHORT, "3", "Replication factor of that topic."),
    _worker("status.storage.partitions", KeyType.INT, "5", "Partitions of that topic."),
    _worker("offset.flush.interval.ms", KeyType.LONG, "60000", "How often source offsets are written.", _COMMITTED),
    _worker("offset.flush.timeout.ms", KeyType.LONG, "5000", "How long writing them may take.", _COMMITTED),
    _worker("connect.protocol", KeyType.STRING, "sessioned", "How workers agree on who does what."),
    _worker(
        "connector.client.config.override.policy",
        KeyType.STRING,
        "All",
        "Which client settings connectors may override; all of them may be set here.",
    ),
    _worker("heartbeat.interval.ms", KeyType.INT, "3000", "How often a worker tells its group that it lives."),
    _worker("session.timeout.ms", KeyType.INT, "10000", "After how long a silent worker is taken for dead."),
    _worker("rebalance.timeout.ms", KeyType.INT, "60000", "How long workers have to join after a change."),
    _worker(
        "scheduled.rebalance.max.delay.ms", KeyType.INT, "300000", "How long a lost worker's tasks wait for its return."
    ),
    _worker(
        "inter.worker.key.generation.algorithm", KeyType.STRING, "HmacSHA256", "Makes keys for requests of workers."
    ),
    _worker("inter.worker.key.size", KeyType.INT, None, "The size of such a key, in bits."),
    _worker("inter.worker.key.ttl.ms", KeyType.INT, "3600000", "How long such a key is used."),
    _worker("inter.worker.signature.algorithm", KeyType.STRING, "HmacSHA256", "Signs requests between workers."),
    _worker("inter.worker.verification.algorithms", KeyType.LIST, "HmacSHA256", "Signatures that workers accept."),
    _worker("worker.sync.timeout.ms", KeyType.INT, "3000", "How long a worker waits to read the newest configuration."),
    _worker("worker.unsync.backoff.ms", KeyType.INT, "300000", "How long a worker that can't do so stays out."),
    _worker("task.shutdown.graceful.timeout.ms", KeyType.LONG, "5000", "How long tasks have to end."),
    _worker("topic.tracking.enable", KeyType.BOOLEAN, "true", "Note which topics a connector uses."),
    _worker("topic.tracking.allow.reset", KeyType.BOOLEAN, "true", "Whether those notes may be reset."),
    _worker("plugin.path", KeyType.LIST, None, "Directories with plugins.", _PLUGINS),
    _worker("plugin.discovery", KeyType.STRING, "hybrid_warn", "How plugins are found.", _PLUGINS),
    _worker("metrics.num.samples", KeyType.INT, "2", "Samples kept for a metric.", _NO_JMX),
    _worker("metrics.recording.level", KeyType.STRING, "INFO", "Which metrics are recorded.", _NO_JMX),
    _worker("metrics.sample.window.ms", KeyType.LONG, "30000", "How long a sample of a metric is.", _NO_JMX),
    _worker("listeners", KeyType.LIST, "http://:8083", "Addresses of the REST API.", _REST),
    _worker("admin.listeners", KeyType.LIST, None, "Addresses of its administrative part.", _REST),
    _worker("rest.advertised.host.name", KeyType.STRING, None, "The host that the worker advertises to others.", _REST),
    _worker("rest.advertised.port", KeyType.INT, None, "The port that the worker advertises to others.", _REST),
    _worker(
        "rest.advertised.listener", KeyType.STRING, None, "The listener that the worker advertises to others.", _REST
    ),
    _worker("rest.extension.classes", KeyType.LIST, "", "Java classes that extend the REST API.", _REST),
    _worker("response.http.headers.config", KeyType.STRING, "", "Headers of the REST API's answers.", _REST),
    _worker("access.control.allow.methods", KeyType.STRING, "", _CORS, _REST),
    _worker("access.control.allow.origin", KeyType.STRING, "", _CORS, _REST),
)

KEYS = (*_USED, *_DEFAULT_ONLY, *_CONNECTOR, *_WORKER)

FAMILIES = {
    "transforms.": ("Settings of a transform.", _JAVA_TRANSFORMS),
    "predicates.": ("Settings of a predicate.", _JAVA_TRANSFORMS),
    "key.converter.": ("Settings of the converter of keys.", _BYTES),
    "value.converter.": ("Settings of the converter of values.", _BYTES),
    "header.converter.": ("Settings of the converter of headers.", _BYTES),
    "topic.creation.": ("Rules by which topics are created.", _CREATED),
    "listeners.https.": ("TLS of the REST API.", _REST),
    "admin.listeners.https.": ("TLS of its administrative part.", _REST),
    "metrics.context.": ("Labels of metrics.", _NO_JMX),
    "config.providers.": ("A config provider's class and its settings.", ""),
    "replication.policy.": ("Settings of a replication policy.", "only a policy of your own may read it"),
}
"""Keys whose names end as the user likes: prefix, meaning, and why they have no effect ("" where they are used)."""

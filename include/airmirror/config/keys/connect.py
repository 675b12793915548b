"""Kafka Connect's keys, which every MirrorMaker 2 file may hold (org.apache.kafka.connect.runtime).

Airflow and Spark take the place of Connect's workers, so most of them have no effect; they are known so that an
existing file is valid and a misspelt key is found.
"""

from __future__ import annotations

from airmirror.config.keys.key import BOOLEAN, CLASS, INT, LIST, LONG, SHORT, STRING, Key, KeyMaker, KeyScope

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
    INT(
        "tasks.max = auto",
        "The most slots (Spark tasks) of a window. auto: its equal share of what Spark runs at once, among the enabled flows; "
        "and where a record waits for longer than window.max.ms, what Spark can start besides (MirrorMaker 2's default is 1).",
        values=("auto",),
        minimum=1,
    ),
    SHORT(
        "offset.storage.replication.factor = 3",
        "Replication factor of mm2-offsets.<source>.internal and of the mapping topic on the target; "
        "-1 takes the brokers' default.",
        KeyScope.WORKER,
        minimum=-1,
    ),
    INT(
        "offset.storage.partitions = 25",
        "Partitions of mm2-offsets.<source>.internal where Airmirror creates it; -1 takes the brokers' default.",
        KeyScope.WORKER,
        minimum=-1,
    ),
    BOOLEAN(
        "topic.creation.enable = true",
        "Whether missing remote topics and partitions are created; false: a topic without its remote topic is refused, "
        "partitions that the remote topic lacks wait. Internal topics are created in any case.",
        KeyScope.WORKER,
    ),
    STRING(
        "errors.tolerance = none",
        "When the target rejects a record: `none` fails its partition, `all` skips the record, "
        "declares it lost and writes it to errors.deadletterqueue.topic.name.",
        values=("none", "all"),
    ),
)

_DEFAULT_ONLY = (
    LIST.default_only("transforms =", "Single message transforms.", _JAVA_TRANSFORMS),
    LIST.default_only("predicates =", "Predicates of transforms.", _JAVA_TRANSFORMS),
    *(
        CLASS.default_only(f"{name} = {_BYTE_ARRAY}", "Converts records.", _BYTES, KeyScope.WORKER)
        for name in ("key.converter", "value.converter", "header.converter")
    ),
    STRING.default_only(
        "offset.storage.topic = mm2-offsets.<source>.internal",
        "The topic that holds Connect's source offsets.",
        _PROGRESS_NAME,
        KeyScope.WORKER,
    ),
    STRING.default_only("offsets.storage.topic =", "A connector's own topic for source offsets.", _PROGRESS_NAME),
)


def _connector(row: KeyMaker, line: str, doc: str, reason: str = _NO_WORKER) -> Key:
    return row.without_effect(line, doc, reason)


def _worker(row: KeyMaker, line: str, doc: str, reason: str = _NO_WORKER) -> Key:
    return row.without_effect(line, doc, reason, KeyScope.WORKER)


_RETRY = "Spark and Airflow retry"
_RETRIES_DOC = "How long a failed operation on a record is tried again, in ms; 0: not, -1: for ever."
_CREATED = "remote topics are created before records are copied"
_COMMITTED = "progress is committed with the records"
_REST = "Airflow's API server answers"
_CORS = "A header of the REST API's answers to pages from elsewhere."
_VERSION = "Which version of a plugin to load."

_CONNECTOR = (
    _connector(STRING, "name", "The connector's name."),
    _connector(STRING, "connector.class", "The connector's Java class."),
    _connector(STRING, "connector.plugin.version", _VERSION, _PLUGINS),
    _connector(STRING, "key.converter.plugin.version", _VERSION, _PLUGINS),
    _connector(STRING, "value.converter.plugin.version", _VERSION, _PLUGINS),
    _connector(STRING, "header.converter.plugin.version", _VERSION, _PLUGINS),
    _connector(
        STRING,
        "config.action.reload = restart",
        "What happens when a config provider's value changes: `none` or `restart`.",
        "the file is read again for every window",
    ),
    _connector(BOOLEAN, "tasks.max.enforce = true", "Fail a connector that makes more tasks than tasks.max."),
    _connector(BOOLEAN, "errors.log.enable = false", "Log tolerated errors.", "errors are always logged"),
    _connector(
        BOOLEAN, "errors.log.include.messages = false", "Log the record of an error.", "records are never logged"
    ),
    _connector(LONG, "errors.retry.timeout = 0", _RETRIES_DOC, _RETRY),
    _connector(LONG, "errors.retry.delay.max.ms = 60000", "The longest pause between such attempts.", _RETRY),
    _connector(STRING, "exactly.once.support = requested", "Whether the connector must be exactly once.", _ONCE),
    _connector(
        STRING,
        "transaction.boundary = poll",
        "When a transaction ends: `poll`, `interval` or `connector`.",
        "see window.commit.bytes and window.commit.ms",
    ),
    _connector(LONG, "transaction.boundary.interval.ms", "With `interval`: after how many ms.", "see window.commit.ms"),
    _connector(LIST, "topic.creation.groups =", "Groups of rules by which topics are created.", _CREATED),
    _connector(INT, "task.index", "MirrorMaker 2 gives it to its tasks: a task's number."),
    _connector(LIST, "task.assigned.partitions", "MirrorMaker 2 gives it to its tasks: their partitions."),
    _connector(LIST, "task.assigned.groups", "MirrorMaker 2 gives it to its tasks: their consumer groups."),
)

_WORKER = (
    _worker(
        STRING,
        "exactly.once.source.support = disabled",
        "Whether workers write records and offsets in transactions: `disabled`, `preparing`, `enabled`.",
        _ONCE,
    ),
    _worker(STRING, "group.id", "The workers' group, <source>-mm2 in MirrorMaker 2."),
    _worker(STRING, "config.storage.topic", "The topic that holds connectors' configurations."),
    _worker(SHORT, "config.storage.replication.factor = 3", "Replication factor of that topic."),
    _worker(STRING, "status.storage.topic", "The topic that holds the state of connectors and tasks."),
    _worker(SHORT, "status.storage.replication.factor = 3", "Replication factor of that topic."),
    _worker(INT, "status.storage.partitions = 5", "Partitions of that topic."),
    _worker(LONG, "offset.flush.interval.ms = 60000", "How often source offsets are written.", _COMMITTED),
    _worker(LONG, "offset.flush.timeout.ms = 5000", "How long writing them may take.", _COMMITTED),
    _worker(STRING, "connect.protocol = sessioned", "How workers agree on who does what."),
    _worker(
        STRING,
        "connector.client.config.override.policy = All",
        "Which client settings connectors may override; all of them may be set here.",
    ),
    _worker(INT, "heartbeat.interval.ms = 3000", "How often a worker tells its group that it lives."),
    _worker(INT, "session.timeout.ms = 10000", "After how long a silent worker is taken for dead."),
    _worker(INT, "rebalance.timeout.ms = 60000", "How long workers have to join after a change."),
    _worker(INT, "scheduled.rebalance.max.delay.ms = 300000", "How long a lost worker's tasks wait for its return."),
    _worker(STRING, "inter.worker.key.generation.algorithm = HmacSHA256", "Makes keys for requests of workers."),
    _worker(INT, "inter.worker.key.size", "The size of such a key, in bits."),
    _worker(INT, "inter.worker.key.ttl.ms = 3600000", "How long such a key is used."),
    _worker(STRING, "inter.worker.signature.algorithm = HmacSHA256", "Signs requests between workers."),
    _worker(LIST, "inter.worker.verification.algorithms = HmacSHA256", "Signatures that workers accept."),
    _worker(INT, "worker.sync.timeout.ms = 3000", "How long a worker waits to read the newest configuration."),
    _worker(INT, "worker.unsync.backoff.ms = 300000", "How long a worker that can't do so stays out."),
    _worker(LONG, "task.shutdown.graceful.timeout.ms = 5000", "How long tasks have to end."),
    _worker(BOOLEAN, "topic.tracking.enable = true", "Note which topics a connector uses."),
    _worker(BOOLEAN, "topic.tracking.allow.reset = true", "Whether those notes may be reset."),
    _worker(LIST, "plugin.path", "Directories with plugins.", _PLUGINS),
    _worker(STRING, "plugin.discovery = hybrid_warn", "How plugins are found.", _PLUGINS),
    _worker(INT, "metrics.num.samples = 2", "Samples kept for a metric.", _NO_JMX),
    _worker(STRING, "metrics.recording.level = INFO", "Which metrics are recorded.", _NO_JMX),
    _worker(LONG, "metrics.sample.window.ms = 30000", "How long a sample of a metric is.", _NO_JMX),
    _worker(LIST, "listeners = http://:8083", "Addresses of the REST API.", _REST),
    _worker(LIST, "admin.listeners", "Addresses of its administrative part.", _REST),
    _worker(STRING, "rest.advertised.host.name", "The host that the worker advertises to others.", _REST),
    _worker(INT, "rest.advertised.port", "The port that the worker advertises to others.", _REST),
    _worker(STRING, "rest.advertised.listener", "The listener that the worker advertises to others.", _REST),
    _worker(LIST, "rest.extension.classes =", "Java classes that extend the REST API.", _REST),
    _worker(STRING, "response.http.headers.config =", "Headers of the REST API's answers.", _REST),
    _worker(STRING, "access.control.allow.methods =", _CORS, _REST),
    _worker(STRING, "access.control.allow.origin =", _CORS, _REST),
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

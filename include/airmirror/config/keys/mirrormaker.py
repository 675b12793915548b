"""MirrorMaker 2's own keys, as of Kafka 4.2 (M/Mirror{Connector,Source,Checkpoint,Heartbeat,Maker}Config.java)."""

from airmirror.config.keys.key import BOOLEAN, CLASS, INT, LIST, LONG, POSITIVE, SECONDS, SHORT, STRING, KeyScope

_EVERY_TIME = "every window looks for new groups"
_NO_JAVA = "Java classes can't run here"
_REMOVED = "removed in Kafka 4.0"

_FLOWS = (
    LIST("clusters", "The aliases of the clusters.", KeyScope.DEPLOYMENT),
    LIST("config.providers =", "Names of config providers, for ${name:path:key} in values.", KeyScope.DEPLOYMENT),
    BOOLEAN.without_effect(
        "dedicated.mode.enable.internal.rest = false",
        "Whether the nodes of a dedicated MirrorMaker 2 talk to each other over REST.",
        "Airflow and Spark distribute the work",
        KeyScope.DEPLOYMENT,
    ),
    BOOLEAN("enabled = false", "Whether to replicate source->target.", KeyScope.FLOW_ONLY),
    LIST("bootstrap.servers", "The cluster's brokers to connect to first: host:port,…", KeyScope.CLUSTER),
    STRING.without_effect("source.cluster.alias", "Alias of the source cluster.", "the flow's name tells it"),
    STRING.without_effect("target.cluster.alias", "Alias of the target cluster.", "the flow's name tells it"),
)

_NAMING = (
    CLASS(
        "replication.policy.class = org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
        "How remote topics are named: DefaultReplicationPolicy, IdentityReplicationPolicy or your own as module:Class.",
    ),
    STRING("replication.policy.separator = .", "The text between alias and topic in a remote topic's name."),
    BOOLEAN(
        "replication.policy.internal.topic.separator.enabled = true",
        "Whether a custom separator is used in the names of the checkpoint and offset sync topics too.",
    ),
    LIST("topics = .*", "Topics to replicate: names and regular expressions."),
    LIST(
        r"topics.exclude = mm2.*\.internal, .*\.replica, __.*",
        "Topics not to replicate: names and regular expressions. Excludes win over includes.",
    ),
    CLASS.default_only(
        "topic.filter.class = org.apache.kafka.connect.mirror.DefaultTopicFilter",
        "Selects topics to replicate.",
        f"{_NO_JAVA}; select with topics and topics.exclude",
    ),
    BOOLEAN("heartbeats.replication.enabled = true", "Replicate heartbeats topics though no filter names them."),
)

_TOPICS = (
    INT(
        "replication.factor = 2",
        "Replication factor of new remote topics; -1 takes the target brokers' default.",
        minimum=-1,
    ),
    LIST(
        "config.properties.exclude = "
        "follower.replication.throttled.replicas, leader.replication.throttled.replicas, "
        "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, "
        "log.message.timestamp.after.max.ms, message.timestamp.type, "
        "unclean.leader.election.enable, min.insync.replicas",
        "Topic configs that are not copied: names and regular expressions.",
    ),
    STRING(
        "use.defaults.from = target", "Whose default topic configs a remote topic has.", values=("source", "target")
    ),
    CLASS.default_only(
        "config.property.filter.class = org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
        "Selects topic configs to copy.",
        f"{_NO_JAVA}; select with config.properties.exclude",
    ),
    BOOLEAN("sync.topic.configs.enabled = true", "Keep remote topics' configs as the source's."),
    LONG(
        "sync.topic.configs.interval.seconds = 600",
        "How often configs are copied while a window follows the log; every window does it first; less than 0: never.",
    ),
    BOOLEAN("sync.topic.acls.enabled = true", "Give remote topics the ACLs of their topics' readers."),
    LONG(
        "sync.topic.acls.interval.seconds = 600",
        "How often ACLs are copied while a window follows the log; every window does it first; less than 0: never.",
    ),
    BOOLEAN(
        "refresh.topics.enabled = true",
        "Whether to look for new topics and partitions; false: once a flow has replicated something it stays with what it "
        "has.",
    ),
    LONG(
        "refresh.topics.interval.seconds = 600",
        "How often remote topics are compared while a window follows the log; every window does it first, and new topics and "
        "partitions are seen within seconds; less than 0 is as refresh.topics.enabled = false.",
    ),
    CLASS.default_only(
        "forwarding.admin.class = org.apache.kafka.clients.admin.ForwardingAdmin",
        "Creates topics, partitions, configs and ACLs.",
        _NO_JAVA,
    ),
    POSITIVE("admin.timeout.ms = 60000", "How long an administrative task may take, in ms."),
)

_OFFSETS = (
    STRING(
        "offset-syncs.topic.location = source",
        "The cluster that holds the offset syncs topic.",
        values=("source", "target"),
    ),
    SHORT("offset-syncs.topic.replication.factor = 3", "Replication factor of the offset syncs topic."),
    BOOLEAN("emit.offset-syncs.enabled = true", "Whether to write offset syncs."),
    LONG(
        "offset.lag.max = 100",
        "How far, in records, a partition goes without an offset sync, within offset.syncs.per.window; translation by "
        "Airmirror is exact whatever it is.",
    ),
)

_GROUPS = (
    LIST("groups = .*", "Consumer groups to move: names and regular expressions."),
    LIST(
        "groups.exclude = console-consumer-.*, connect-.*, __.*",
        "Consumer groups not to move. Excludes win over includes.",
    ),
    CLASS.default_only(
        "group.filter.class = org.apache.kafka.connect.mirror.DefaultGroupFilter",
        "Selects consumer groups.",
        f"{_NO_JAVA}; select with groups and groups.exclude",
    ),
    BOOLEAN.without_effect("refresh.groups.enabled = true", "Whether to look for new consumer groups.", _EVERY_TIME),
    LONG.without_effect(
        "refresh.groups.interval.seconds = 600", "How often to look for new consumer groups.", _EVERY_TIME
    ),
    BOOLEAN("emit.checkpoints.enabled = true", "Whether to write checkpoints."),
    LONG("emit.checkpoints.interval.seconds = 60", "How often checkpoints are written; less than 0 writes none."),
    SHORT("checkpoints.topic.replication.factor = 3", "Of the checkpoints topic."),
    BOOLEAN("sync.group.offsets.enabled = false", "Move idle groups on the target."),
    SECONDS(
        "sync.group.offsets.interval.seconds = 60",
        "How often groups are moved: after a window, and while one follows the log. Fractions too, from half a second on.",
        minimum=0.5,
    ),
)

_HEARTBEATS = (
    BOOLEAN(
        "emit.heartbeats.enabled = true",
        "Whether to write heartbeats to the target: for the flows that the file names, and for the reverse flow of each.",
    ),
    LONG(
        "emit.heartbeats.interval.seconds = 1", "How often heartbeats are written; 0 is as 1, less than 0 writes none."
    ),
    SHORT("heartbeats.topic.replication.factor = 3", "Replication factor of the heartbeats topic."),
)

_METRICS = (
    LIST.without_effect(
        "metric.reporters = org.apache.kafka.common.metrics.JmxReporter", "Java classes that report metrics.", _NO_JAVA
    ),
    LIST.without_effect(
        "metric.names.formats = legacy", "The names of MirrorMaker 2's metrics.", "there is no JMX here"
    ),
    LONG.without_effect(
        "consumer.poll.timeout.ms = 1000", "How long a task polls the source cluster.", "windows end at the log's end"
    ),
)

_GONE = (
    LIST.default_only("topics.blacklist =", "Topics not to replicate.", f"{_REMOVED}; say topics.exclude"),
    LIST.default_only("groups.blacklist =", "Consumer groups not to move.", f"{_REMOVED}; say groups.exclude"),
    LIST.default_only(
        "config.properties.blacklist =",
        "Topic configs that are not copied.",
        f"{_REMOVED}; say config.properties.exclude",
    ),
    STRING.without_effect(
        "use.incremental.alter.configs = required",
        "Whether only those configs of a topic are altered that differ.",
        f"{_REMOVED}; configs are always altered incrementally",
    ),
    BOOLEAN.without_effect(
        "add.source.alias.to.metrics = true",
        "Whether metrics name the source cluster.",
        f"{_REMOVED}; metrics always name it",
    ),
)

KEYS = (*_FLOWS, *_NAMING, *_TOPICS, *_OFFSETS, *_GROUPS, *_HEARTBEATS, *_METRICS, *_GONE)

"""MirrorMaker 2's own keys, as of Kafka 4.2 (M/Mirror{Connector,Source,Checkpoint,Heartbeat,Maker}Config.java)."""

from __future__ import annotations

from airmirror.config.keys.key import Key, KeyScope, KeyType, Use

_EVERY_TIME = "every window looks for new groups"
_NO_JAVA = "Java classes can't run here"

CLUSTERS = Key("clusters", KeyType.LIST, None, "The aliases of the clusters.", KeyScope.DEPLOYMENT)

_FLOWS = (
    CLUSTERS,
    Key(
        "config.providers",
        KeyType.LIST,
        "",
        "Names of config providers, for ${name:path:key} in values.",
        KeyScope.DEPLOYMENT,
    ),
    Key(
        name="dedicated.mode.enable.internal.rest",
        type=KeyType.BOOLEAN,
        default="false",
        doc="Whether the nodes of a dedicated MirrorMaker 2 talk to each other over REST.",
        scope=KeyScope.DEPLOYMENT,
        use=Use.WITHOUT_EFFECT,
        reason="Airflow and Spark distribute the work",
    ),
    Key("enabled", KeyType.BOOLEAN, "false", "Whether to replicate source->target.", KeyScope.FLOW_ONLY),
    Key(
        "bootstrap.servers",
        KeyType.LIST,
        None,
        "The cluster's brokers to connect to first: host:port,…",
        KeyScope.CLUSTER,
    ),
    Key(
        "source.cluster.alias",
        KeyType.STRING,
        None,
        "Alias of the source cluster.",
        use=Use.WITHOUT_EFFECT,
        reason="the flow's name tells it",
    ),
    Key(
        "target.cluster.alias",
        KeyType.STRING,
        None,
        "Alias of the target cluster.",
        use=Use.WITHOUT_EFFECT,
        reason="the flow's name tells it",
    ),
)

_NAMING = (
    Key(
        "replication.policy.class",
        KeyType.CLASS,
        "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
        "How remote topics are named: DefaultReplicationPolicy, IdentityReplicationPolicy or your own as module:Class.",
    ),
    Key(
        "replication.policy.separator",
        KeyType.STRING,
        ".",
        "The text between alias and topic in a remote topic's name.",
    ),
    Key(
        "replication.policy.internal.topic.separator.enabled",
        KeyType.BOOLEAN,
        "true",
        "Whether a custom separator is used in the names of the checkpoint and offset sync topics too.",
    ),
    Key("topics", KeyType.LIST, ".*", "Topics to replicate: names and regular expressions."),
    Key(
        "topics.exclude",
        KeyType.LIST,
        r"mm2.*\.internal, .*\.replica, __.*",
        "Topics not to replicate: names and regular expressions. Excludes win over includes.",
    ),
    Key(
        "topic.filter.class",
        KeyType.CLASS,
        "org.apache.kafka.connect.mirror.DefaultTopicFilter",
        "Selects topics to replicate.",
        use=Use.DEFAULT_ONLY,
        reason=f"{_NO_JAVA}; select with topics and topics.exclude",
    ),
    Key(
        "heartbeats.replication.enabled",
        KeyType.BOOLEAN,
        "true",
        "Replicate heartbeats topics though no filter names them.",
    ),
)

_TOPICS = (
    Key(
        "replication.factor",
        KeyType.INT,
        "2",
        "Replication factor of new remote topics; -1 takes the target brokers' default.",
        minimum=-1,
    ),
    Key(
        "config.properties.exclude",
        KeyType.LIST,
        "follower.replication.throttled.replicas, leader.replication.throttled.replicas, "
        "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, "
        "log.message.timestamp.after.max.ms, message.timestamp.type, "
        "unclean.leader.election.enable, min.insync.replicas",
        "Topic configs that are not copied: names and regular expressions.",
    ),
    Key(
        "use.defaults.from",
        KeyType.STRING,
        "target",
        "Whose default topic configs a remote topic has.",
        values=("source", "target"),
    ),
    Key(
        "config.property.filter.class",
        KeyType.CLASS,
        "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
        "Selects topic configs to copy.",
        use=Use.DEFAULT_ONLY,
        reason=f"{_NO_JAVA}; select with config.properties.exclude",
    ),
    Key("sync.topic.configs.enabled", KeyType.BOOLEAN, "true", "Keep remote topics' configs as the source's."),
    Key(
        "sync.topic.configs.interval.seconds",
        KeyType.LONG,
        "600",
        "How often configs are copied while a window follows the log; every window does it first.",
    ),
    Key("sync.topic.acls.enabled", KeyType.BOOLEAN, "true", "Give remote topics the ACLs of their topics' readers."),
    Key(
        "sync.topic.acls.interval.seconds",
        KeyType.LONG,
        "600",
        "How often ACLs are copied while a window follows the log; every window does it first.",
    ),
    Key(
        "refresh.topics.enabled",
        KeyType.BOOLEAN,
        "true",
        "Whether to look for new topics and partitions; false: once a flow has replicated something it stays with what it "
        "has.",
    ),
    Key(
        "refresh.topics.interval.seconds",
        KeyType.LONG,
        "600",
        "How often remote topics are compared while a window follows the log; every window does it first, and new topics and "
        "partitions are seen within seconds.",
    ),
    Key(
        "forwarding.admin.class",
        KeyType.CLASS,
        "org.apache.kafka.clients.admin.ForwardingAdmin",
        "Creates topics, partitions, configs and ACLs.",
        use=Use.DEFAULT_ONLY,
        reason=_NO_JAVA,
    ),
    Key("admin.timeout.ms", KeyType.LONG, "60000", "How long an administrative task may take, in ms.", minimum=1),
)

_OFFSETS = (
    Key(
        "offset-syncs.topic.location",
        KeyType.STRING,
        "source",
        "The cluster that holds the offset syncs topic.",
        values=("source", "target"),
    ),
    Key("offset-syncs.topic.replication.factor", KeyType.SHORT, "3", "Replication factor of the offset syncs topic."),
    Key("emit.offset-syncs.enabled", KeyType.BOOLEAN, "true", "Whether to write offset syncs."),
    Key(
        "offset.lag.max",
        KeyType.LONG,
        "100",
        "How far, in records, a partition goes without an offset sync, within offset.syncs.per.window; translation by "
        "Airmirror is exact whatever it is.",
    ),
)

_GROUPS = (
    Key("groups", KeyType.LIST, ".*", "Consumer groups to move: names and regular expressions."),
    Key(
        "groups.exclude",
        KeyType.LIST,
        "console-consumer-.*, connect-.*, __.*",
        "Consumer groups not to move. Excludes win over includes.",
    ),
    Key(
        "group.filter.class",
        KeyType.CLASS,
        "org.apache.kafka.connect.mirror.DefaultGroupFilter",
        "Selects consumer groups.",
        use=Use.DEFAULT_ONLY,
        reason=f"{_NO_JAVA}; select with groups and groups.exclude",
    ),
    Key(
        "refresh.groups.enabled",
        KeyType.BOOLEAN,
        "true",
        "Whether to look for new consumer groups.",
        use=Use.WITHOUT_EFFECT,
        reason=_EVERY_TIME,
    ),
    Key(
        "refresh.groups.interval.seconds",
        KeyType.LONG,
        "600",
        "How often to look for new consumer groups.",
        use=Use.WITHOUT_EFFECT,
        reason=_EVERY_TIME,
    ),
    Key("emit.checkpoints.enabled", KeyType.BOOLEAN, "true", "Whether to write checkpoints."),
    Key("emit.checkpoints.interval.seconds", KeyType.LONG, "60", "How often checkpoints are written."),
    Key("checkpoints.topic.replication.factor", KeyType.SHORT, "3", "Of the checkpoints topic."),
    Key("sync.group.offsets.enabled", KeyType.BOOLEAN, "false", "Move idle groups on the target."),
    Key(
        "sync.group.offsets.interval.seconds",
        KeyType.SECONDS,
        "60",
        "How often groups are moved: after a window, and while one follows the log. Fractions too, from half a second on.",
        minimum=0.5,
    ),
)

_HEARTBEATS = (
    Key(
        "emit.heartbeats.enabled",
        KeyType.BOOLEAN,
        "true",
        "Whether to write heartbeats to the target: for the flows that the file names, and for the reverse flow of each.",
    ),
    Key(
        "emit.heartbeats.interval.seconds",
        KeyType.LONG,
        "1",
        "How often heartbeats are written; 0 is as 1, less than 0 writes none.",
    ),
    Key("heartbeats.topic.replication.factor", KeyType.SHORT, "3", "Replication factor of the heartbeats topic."),
)

_METRICS = (
    Key(
        "metric.reporters",
        KeyType.LIST,
        "org.apache.kafka.common.metrics.JmxReporter",
        "Java classes that report metrics.",
        use=Use.WITHOUT_EFFECT,
        reason=_NO_JAVA,
    ),
    Key(
        "metric.names.formats",
        KeyType.LIST,
        "legacy",
        "The names of MirrorMaker 2's metrics.",
        use=Use.WITHOUT_EFFECT,
        reason="there is no JMX here",
    ),
    Key(
        "consumer.poll.timeout.ms",
        KeyType.LONG,
        "1000",
        "How long a task polls the source cluster.",
        use=Use.WITHOUT_EFFECT,
        reason="windows end at the log's end",
    ),
)


def _gone(name: str, type_: KeyType, default: str, doc: str, now: str, use: Use = Use.DEFAULT_ONLY) -> Key:
    return Key(name, type_, default, doc, use=use, reason=f"removed in Kafka 4.0; {now}")


_GONE = (
    _gone("topics.blacklist", KeyType.LIST, "", "Topics not to replicate.", "say topics.exclude"),
    _gone("groups.blacklist", KeyType.LIST, "", "Consumer groups not to move.", "say groups.exclude"),
    _gone(
        "config.properties.blacklist",
        KeyType.LIST,
        "",
        "Topic configs that are not copied.",
        "say config.properties.exclude",
    ),
    _gone(
        name="use.incremental.alter.configs",
        type_=KeyType.STRING,
        default="required",
        doc="Whether only those configs of a topic are altered that differ.",
        now="configs are always altered incrementally",
        use=Use.WITHOUT_EFFECT,
    ),
    _gone(
        name="add.source.alias.to.metrics",
        type_=KeyType.BOOLEAN,
        default="true",
        doc="Whether metrics name the source cluster.",
        now="metrics always name it",
        use=Use.WITHOUT_EFFECT,
    ),
)

KEYS = (*_FLOWS, *_NAMING, *_TOPICS, *_OFFSETS, *_GROUPS, *_HEARTBEATS, *_METRICS, *_GONE)

"""The keys that MirrorMaker 2 does not have."""

from airmirror.config.keys.key import BOOLEAN, INT, LIST, LONG, NATURAL, POSITIVE, SCHEDULE, STRING, KeyScope

KEYS = (
    # The window
    POSITIVE(
        "window.max.ms = 120000", "The longest time that a window copies, in ms; the next window copies the rest."
    ),
    POSITIVE(
        "window.max.bytes", "The most bytes a window plans; not set: no limit. One that follows the log has none."
    ),
    POSITIVE("window.commit.bytes = 268435456", "A slot commits its transaction after this many bytes."),
    POSITIVE("window.commit.ms = 10000", "A slot commits its transaction after this many ms."),
    NATURAL(
        "window.follow.ms = 0",
        "The time for which a window stays after its slots have begun, in ms: it copies what comes until then, and is judged "
        "meanwhile. If Spark needs more than 30 s to start the slots, the extra time is counted. A window ends soon where there "
        "is something new to copy, or others want the flow's lease, so it may be hours, 23 at most. 0: the window "
        "ends at the log end that it saw at its start. Audits and backfills do not follow.",
    ),
    POSITIVE("window.follow.commit.ms = 250", "A slot that follows the log commits what came after this many ms."),
    POSITIVE(
        "verify.interval.ms = 5000",
        "While a window follows the log, the gate judges what was committed after each interval, in ms.",
    ),
    POSITIVE(
        "window.slot.bytes = 67108864",
        "A window takes a slot for each of this many bytes that it plans, at most tasks.max: a small flow holds one core. "
        "One that follows the log adds what comes in ten seconds.",
    ),
    POSITIVE(
        "throttle.bytes.per.second",
        "The most bytes a second that the flow fetches from its source, compressed as they are, in all its slots; not set: no "
        "limit.",
    ),
    STRING(
        "window.verify = readback",
        "The proof of a window: `readback` reads the written records back and compares them before the commit, "
        "`acks` trusts the broker's acknowledgements and leaves the comparison to `airmirror verify` and audits.",
        values=("readback", "acks"),
    ),
    LONG(
        "window.largest.batch.bytes = 268435456",
        "The most bytes of records, without their compression, of a batch that a slot must take apart (most are copied "
        "whole). A larger one stops its partition, or is declared lost with errors.tolerance=all. A slot needs up to three "
        "times as much memory.",
        minimum=1_048_576,
    ),
    LIST(
        "topics.compacted =",
        "Topics that were compacted once, though their cleanup.policy no longer says so: missing offsets in them "
        "count as compacted. Names and regular expressions.",
    ),
    LIST(
        "topics.log.append.time =",
        "Topics whose remote topics may have message.timestamp.type=LogAppendTime: the target then replaces each record's "
        "time, and all but times is compared. Any other such remote topic is refused. Names and regular expressions.",
    ),
    # Airflow
    STRING(
        "airflow.conn.id",
        "The Airflow connection (type airmirror_kafka) that holds this cluster's client settings, for runs in Airflow.",
        KeyScope.CLUSTER,
    ),
    STRING(
        "spark.conn.id = spark_connect_default",
        "The Airflow connection (type spark_connect) of the Spark Connect server that runs the flow's slots.",
    ),
    SCHEDULE("window.schedule = 1 minute", "The schedule of windows: an interval, a cron line, or `@continuous`."),
    NATURAL("window.max.lag.records", "The gate warns above this lag, in records."),
    NATURAL("window.max.lag.seconds", "The gate warns above this lag, in seconds."),
    STRING(
        "window.max.lag.blocks",
        "The effect of too much lag besides the warning: `groups` holds group offsets back.",
        values=("groups",),
    ),
    NATURAL("window.idle.ms = 5000", "The wait of `@continuous` after an empty or failed window, in ms."),
    POSITIVE(
        "window.deadline.ms",
        "A run that has taken so much longer than the last ten on average is counted as late, in ms; not set: twice what a "
        "window may take.",
    ),
    POSITIVE(
        "window.trigger.records",
        "Start a window also when the source has grown by this many records (offsets); not with `@continuous`.",
    ),
    SCHEDULE(
        "audit.schedule = @hourly",
        "The intervals, of the records' timestamps, in which the past is compared again: an interval or a cron line. Empty: "
        "the DAG audit.<source>.<target> runs only when it is triggered, and has no backfills.",
    ),
    STRING(
        "backfill.into.suffix",
        "In backfills, audits and replays started by hand: records before the first replicated offset are replicated "
        "too, from the source's first offset on, into topics of their own: remote topic and this suffix. Not set: refused.",
    ),
    LIST(
        "dags = audit, operate, rehearse",
        "The DAGs that the flow has in Airflow besides `replicate.…` and `decide.…`; schedules of the others have no effect.",
        values=("audit", "operate", "rehearse"),
    ),
    STRING(
        "on.failure.notifier",
        "The Airflow notifier that is called once an incident: the path of its class, then its arguments as JSON, if any.",
    ),
    LIST(
        "decide.users",
        "Who may answer the questions of `decide.…` and `operate.…` in Airflow, as users' ids there. Not set: all who may "
        "answer required actions of these DAGs.",
    ),
    *(
        LIST(
            f"{runbook}.users",
            f"Who may start a {runbook} in Airflow, as users' names there. Not set: whoever may trigger `operate.…`.",
        )
        for runbook in ("failover", "failback", "migration", "takeover", "handback")
    ),
    INT(
        "retention.days",
        "Days to keep verified mapping records, and pages that are no evidence. Not set: mapping records until the source has "
        "deleted what they are of, the newest 200 pages of a kind.",
        minimum=1,
    ),
    # Groups, topologies, errors
    INT("offset.syncs.per.window = 10", "The most offset syncs between the first and the last of a range.", minimum=0),
    BOOLEAN(
        "aggregate = false",
        "Declares that other flows write the same remote topics: order is then promised per source only, and a group is "
        "moved only where groups has its name, not by a pattern.",
        KeyScope.FLOW_ONLY,
    ),
    BOOLEAN(
        "equal.cluster.ids.allowed = false",
        "Says that source and target are two clusters although their cluster ids are equal.",
        KeyScope.FLOW_ONLY,
    ),
    LIST(
        "target.cluster.other.aliases =",
        "Other names by which other configurations call the target, names and regular expressions: what came from there "
        "under such a name is not replicated back.",
        KeyScope.FLOW_ONLY,
    ),
    NATURAL(
        "failover.quiet.ms = 5000",
        "How long no end offset of the source may move, and no transaction be open, before a planned failover drains it.",
    ),
    SCHEDULE(
        "failover.rehearsal.schedule",
        "When the DAG rehearse.<source>.<target> rehearses a failover: an interval or a cron line. Not set: when it is "
        "triggered.",
    ),
    POSITIVE(
        "failover.rehearsal.records = 1000000",
        "The newest source offsets of each partition whose records a rehearsal compares on both clusters.",
    ),
    LIST(
        "streams.applications =",
        "The application.id of Kafka Streams applications whose changelog and repartition topics are replicated, whatever "
        "topics and topics.exclude say of them. What Streams has deleted from a repartition topic was handled: no loss.",
    ),
    BOOLEAN(
        "streams.groups.ahead.allowed = false",
        "Says that the target's brokers are Kafka 4.2.1 or later, or that Streams applications start there with "
        "group.protocol=classic: 4.2.0 can't load a streams group that was given positions before it came (KAFKA-20254).",
        KeyScope.FLOW_ONLY,
    ),
    LIST(
        "takeover.offsets.topics =",
        "Topics on the target in which Connect's workers keep the progress of a MirrorMaker 2 (their offset.storage.topic, "
        "then the connector's own): partitions of which nothing is known here continue after it.",
        KeyScope.FLOW_ONLY,
    ),
    STRING(
        "takeover.connector.name = MirrorSourceConnector",
        "With takeover.offsets.topics: the name of its MirrorSourceConnector there.",
        KeyScope.FLOW_ONLY,
    ),
    BOOLEAN(
        "console.records.enabled = false",
        "The console shows single records of the flow's topics and their copies to whoever may see Airflow's connections.",
        KeyScope.FLOW_ONLY,
    ),
    LIST(
        "console.records.mask =",
        "Names of JSON fields and of headers whose values the console never shows, in whatever case. With any named, a key or a "
        "value that is no JSON is not shown at all.",
        KeyScope.FLOW_ONLY,
    ),
    STRING(
        "errors.deadletterqueue.topic.name =",
        "With errors.tolerance=all: the topic on the target for records that the remote topic does not take, made "
        "when it is missing; not set: they are only counted.",
    ),
    # Migrations
    NATURAL(
        "move.quiet.ms = 5000",
        "How long no end offset of a move group's topics may move, and no transaction be open, until its producers have stopped.",
    ),
    NATURAL(
        "move.soak.ms = 86400000",
        "How long after its producers were cut over a move group can be finished; until then it can be undone.",
    ),
    STRING(
        "move.block.producers = none",
        "How a move group's producers are blocked on the source when they are cut over. acl: its principals are denied WRITE.",
        values=("none", "acl"),
    ),
    BOOLEAN(
        "move.reverse = false",
        "Before a move group's producers are cut over, a migration prepares the reverse flow: from the cut-over on, windows copy "
        "what is written on the target back to the source, which stays usable.",
    ),
    SCHEDULE(
        "move.rehearsal.schedule",
        "When the DAG rehearse.<source>.<target> rehearses the migration of each move group: an interval or a cron line. Not "
        "set: when it is triggered.",
    ),
    POSITIVE(
        "move.rehearsal.records = 10000",
        "The newest source offsets of each partition whose records a rehearsal of a migration compares on both clusters.",
    ),
    STRING(
        "sync.topic.acls.mode = readers",
        "migrate: a migration's step `mirror` copies what a move group's clients may, WRITE, groups and transactional ids "
        "included, and their users' quotas. readers: only who may read, as every window does.",
        KeyScope.FLOW_ONLY,
        values=("readers", "migrate"),
    ),
)

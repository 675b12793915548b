"""The keys that MirrorMaker 2 does not have."""

from __future__ import annotations

from airmirror.config.keys import moves
from airmirror.config.keys.key import Key, KeyScope, KeyType

KEYS = (
    # The window
    Key(
        "window.max.ms",
        KeyType.LONG,
        "120000",
        "The longest time that a window copies, in ms; the next window copies the rest.",
        minimum=1,
    ),
    Key(
        "window.max.bytes",
        KeyType.LONG,
        None,
        "The most bytes a window plans; not set: no limit. One that follows the log has none.",
        minimum=1,
    ),
    Key(
        "window.commit.bytes",
        KeyType.LONG,
        "268435456",
        "A slot commits its transaction after this many bytes.",
        minimum=1,
    ),
    Key("window.commit.ms", KeyType.LONG, "10000", "A slot commits its transaction after this many ms.", minimum=1),
    Key(
        "window.follow.ms",
        KeyType.LONG,
        "0",
        "The time for which a window stays after its slots have begun, in ms: it copies what comes until then, and is judged "
        "meanwhile. If Spark needs more than 30 s to start the slots, the extra time is counted. A window ends soon where there "
        "is something new to copy, or others want the flow's lease, so it may be hours. 0: the window ends at the log end that "
        "it saw at its start. "
        "Audits and backfills do not follow.",
        minimum=0,
    ),
    Key(
        "window.follow.commit.ms",
        KeyType.LONG,
        "250",
        "A slot that follows the log commits what came after this many ms.",
        minimum=1,
    ),
    Key(
        "verify.interval.ms",
        KeyType.LONG,
        "5000",
        "While a window follows the log, the gate judges what was committed after each interval, in ms.",
        minimum=1,
    ),
    Key(
        "window.slot.bytes",
        KeyType.LONG,
        "67108864",
        "A window takes a slot for each of this many bytes that it plans, at most tasks.max: a small flow holds one core. "
        "One that follows the log adds what comes in ten seconds.",
        minimum=1,
    ),
    Key(
        "throttle.bytes.per.second",
        KeyType.LONG,
        None,
        "The most bytes a second that the flow fetches from its source, compressed as they are, in all its slots; not set: no "
        "limit.",
        minimum=1,
    ),
    Key(
        "window.verify",
        KeyType.STRING,
        "readback",
        "The proof of a window: `readback` reads the written records back and compares them before the commit, "
        "`acks` trusts the broker's acknowledgements and leaves the comparison to `airmirror verify` and audits.",
        values=("readback", "acks"),
    ),
    Key(
        "window.largest.batch.bytes",
        KeyType.LONG,
        "268435456",
        "The most bytes of records, without their compression, of a batch that a slot must take apart (most are copied "
        "whole). A larger one stops its partition, or is declared lost with errors.tolerance=all. A slot needs up to three "
        "times as much memory.",
        minimum=1_048_576,
    ),
    Key(
        "topics.compacted",
        KeyType.LIST,
        "",
        "Topics that were compacted once, though their cleanup.policy no longer says so: missing offsets in them "
        "count as compacted. Names and regular expressions.",
    ),
    Key(
        "topics.log.append.time",
        KeyType.LIST,
        "",
        "Topics whose remote topics may have message.timestamp.type=LogAppendTime: the target then replaces each record's "
        "time, and all but times is compared. Any other such remote topic is refused. Names and regular expressions.",
    ),
    # Airflow
    Key(
        "airflow.conn.id",
        KeyType.STRING,
        None,
        "The Airflow connection (type airmirror_kafka) that holds this cluster's client settings, for runs in Airflow.",
        KeyScope.CLUSTER,
    ),
    Key(
        "spark.conn.id",
        KeyType.STRING,
        "spark_connect_default",
        "The Airflow connection (type spark_connect) of the Spark Connect server that runs the flow's slots.",
    ),
    Key(
        "window.schedule",
        KeyType.SCHEDULE,
        "1 minute",
        "The schedule of windows: an interval, a cron line, or `@continuous`.",
    ),
    Key("window.max.lag.records", KeyType.LONG, None, "The gate warns above this lag, in records.", minimum=0),
    Key("window.max.lag.seconds", KeyType.LONG, None, "The gate warns above this lag, in seconds.", minimum=0),
    Key(
        "window.max.lag.blocks",
        KeyType.STRING,
        None,
        "The effect of too much lag besides the warning: `groups` holds group offsets back.",
        values=("groups",),
    ),
    Key(
        "window.idle.ms",
        KeyType.LONG,
        "5000",
        "The wait of `@continuous` after an empty or failed window, in ms.",
        minimum=0,
    ),
    Key(
        "window.deadline.ms",
        KeyType.LONG,
        None,
        "A run that has taken so much longer than the last ten on average is counted as late, in ms; not set: twice what a "
        "window may take.",
        minimum=1,
    ),
    Key(
        "window.trigger.records",
        KeyType.LONG,
        None,
        "Start a window also when the source has grown by this many records (offsets); not with `@continuous`.",
        minimum=1,
    ),
    Key(
        "audit.schedule",
        KeyType.SCHEDULE,
        "@hourly",
        "The intervals, of the records' timestamps, in which the past is compared again: an interval or a cron line. Empty: "
        "the DAG audit.<source>.<target> runs only when it is triggered, and has no backfills.",
    ),
    Key(
        "backfill.into.suffix",
        KeyType.STRING,
        None,
        "In backfills, audits and replays started by hand: records before the first replicated offset are replicated "
        "too, from the source's first offset on, into topics of their own: remote topic and this suffix. Not set: refused.",
    ),
    Key(
        "on.failure.notifier",
        KeyType.STRING,
        None,
        "The Airflow notifier that is called once an incident: the path of its class, then its arguments as JSON, if any.",
    ),
    Key(
        "decide.users",
        KeyType.LIST,
        None,
        "Who may decide in Airflow what becomes of partitions that the gate holds, as users' ids there. Not set: all who may "
        "answer required actions of the flow's DAG `decide.…`.",
    ),
    *(
        Key(
            f"{runbook}.users",
            KeyType.LIST,
            None,
            f"Who may start a {runbook} in Airflow, as users' names there. Not set: whoever may trigger `operate.…`.",
        )
        for runbook in ("failover", "failback", "migration", "takeover")
    ),
    Key(
        "retention.days",
        KeyType.INT,
        None,
        "Days to keep verified mapping records, Data Docs and reports of audits; not set: for ever.",
        minimum=1,
    ),
    # Groups, topologies, errors
    Key(
        "offset.syncs.per.window",
        KeyType.INT,
        "10",
        "The most offset syncs between the first and the last of a range.",
        minimum=0,
    ),
    Key(
        "aggregate",
        KeyType.BOOLEAN,
        "false",
        "Declares that other flows write the same remote topics: order is then promised per source only.",
        KeyScope.FLOW_ONLY,
    ),
    Key(
        "aggregate.groups.from",
        KeyType.STRING,
        "",
        "With aggregate = true: the alias of the source whose groups count. Checkpoints and group offsets of an aggregate "
        "are written for that source only, and for none where it is not set.",
    ),
    Key(
        "equal.cluster.ids.allowed",
        KeyType.BOOLEAN,
        "false",
        "Says that source and target are two clusters although their cluster ids are equal.",
        KeyScope.FLOW_ONLY,
    ),
    Key(
        "target.cluster.other.aliases",
        KeyType.LIST,
        "",
        "Other names by which other configurations call the target, names and regular expressions: what came from there "
        "under such a name is not replicated back.",
        KeyScope.FLOW_ONLY,
    ),
    Key(
        "failover.quiet.ms",
        KeyType.LONG,
        "5000",
        "How long no end offset of the source may move, and no transaction be open, before a planned failover drains it.",
        minimum=0,
    ),
    Key(
        "failover.rehearsal.schedule",
        KeyType.SCHEDULE,
        None,
        "When the DAG rehearse.<source>.<target> rehearses a failover: an interval or a cron line. Not set: when it is "
        "triggered.",
    ),
    Key(
        "failover.rehearsal.records",
        KeyType.LONG,
        "1000000",
        "The newest source offsets of each partition whose records a rehearsal compares on both clusters.",
        minimum=1,
    ),
    Key(
        "streams.applications",
        KeyType.LIST,
        "",
        "The application.id of Kafka Streams applications whose changelog and repartition topics are replicated, whatever "
        "topics and topics.exclude say of them. What Streams has deleted from a repartition topic was handled: no loss.",
    ),
    Key(
        "streams.groups.ahead.allowed",
        KeyType.BOOLEAN,
        "false",
        "Says that the target's brokers are Kafka 4.2.1 or later, or that Streams applications start there with "
        "group.protocol=classic: 4.2.0 can't load a streams group that was given positions before it came (KAFKA-20254).",
        KeyScope.FLOW_ONLY,
    ),
    Key(
        "takeover.offsets.topics",
        KeyType.LIST,
        "",
        "Topics on the target in which Connect's workers keep the progress of a MirrorMaker 2 (their offset.storage.topic, "
        "then the connector's own): partitions of which nothing is known here continue after it.",
        KeyScope.FLOW_ONLY,
    ),
    Key(
        "takeover.connector.name",
        KeyType.STRING,
        "MirrorSourceConnector",
        "With takeover.offsets.topics: the name of its MirrorSourceConnector there.",
        KeyScope.FLOW_ONLY,
    ),
    Key(
        "console.records.enabled",
        KeyType.BOOLEAN,
        "false",
        "The console shows single records of the flow's topics and their copies to whoever may see Airflow's connections.",
        KeyScope.FLOW_ONLY,
    ),
    Key(
        "console.records.mask",
        KeyType.LIST,
        "",
        "Names of JSON fields and of headers whose values the console never shows, in whatever case. With any named, a key or a "
        "value that is no JSON is not shown at all.",
        KeyScope.FLOW_ONLY,
    ),
    Key(
        "errors.deadletterqueue.topic.name",
        KeyType.STRING,
        "",
        "With errors.tolerance=all: the topic on the target for records that the remote topic does not take, made "
        "when it is missing; not set: they are only counted.",
    ),
    *moves.OF_FLOW,
)

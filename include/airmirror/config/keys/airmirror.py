"""The keys that MirrorMaker 2 does not have."""

from __future__ import annotations

from airmirror.config.keys import moves
from airmirror.config.keys.key import Key, Scope, Type

KEYS = (
    # The window
    Key(
        "window.max.ms",
        Type.LONG,
        "120000",
        "The longest time that a window copies, in ms; the next window copies the rest.",
        minimum=1,
    ),
    Key(
        "window.max.bytes",
        Type.LONG,
        None,
        "The most bytes a window plans; not set: no limit. One that follows the log has none.",
        minimum=1,
    ),
    Key(
        "window.commit.bytes",
        Type.LONG,
        "268435456",
        "A slot commits its transaction after this many bytes.",
        minimum=1,
    ),
    Key("window.commit.ms", Type.LONG, "10000", "A slot commits its transaction after this many ms.", minimum=1),
    Key(
        "window.follow.ms",
        Type.LONG,
        "0",
        "The time for which a window stays after its slots have begun, in ms: it copies what comes until then, and is judged "
        "meanwhile. What Spark takes longer than 30 s to begin them counts. It ends soon where there is something new to copy, "
        "or others want the flow's claim, so that it may be hours. 0: it ends at the log's end of its beginning. "
        "Audits and backfills do not follow.",
        minimum=0,
    ),
    Key(
        "window.follow.commit.ms",
        Type.LONG,
        "250",
        "A slot that follows the log commits what came after this many ms.",
        minimum=1,
    ),
    Key(
        "verify.interval.ms",
        Type.LONG,
        "5000",
        "While a window follows the log, the gate judges what was committed after each interval, in ms.",
        minimum=1,
    ),
    Key(
        "window.slot.bytes",
        Type.LONG,
        "67108864",
        "A window takes a slot for each of this many bytes that it plans, at most tasks.max: a small flow holds one core. "
        "One that follows the log adds what comes in ten seconds.",
        minimum=1,
    ),
    Key(
        "throttle.bytes.per.second",
        Type.LONG,
        None,
        "The most bytes a second that the flow fetches from its source, compressed as they are, in all its slots; not set: no "
        "limit.",
        minimum=1,
    ),
    Key(
        "window.verify",
        Type.STRING,
        "readback",
        "The proof of a window: `readback` reads the written records back and compares them before the commit, "
        "`acks` trusts the broker's acknowledgements and leaves the comparison to `airmirror verify` and audits.",
        values=("readback", "acks"),
    ),
    Key(
        "window.largest.batch.bytes",
        Type.LONG,
        "268435456",
        "The most bytes of records, without their compression, of a batch that a slot must take apart (most are copied "
        "whole). A larger one stops its partition, or is declared lost with errors.tolerance=all. A slot needs up to three "
        "times as much memory.",
        minimum=1_048_576,
    ),
    Key(
        "topics.compacted",
        Type.LIST,
        "",
        "Topics that were compacted once, though their cleanup.policy no longer says so: missing offsets in them "
        "count as compacted. Names and regular expressions.",
    ),
    Key(
        "topics.log.append.time",
        Type.LIST,
        "",
        "Topics whose remote topics may have message.timestamp.type=LogAppendTime: the target then replaces each record's "
        "time, and all but times is compared. Any other such remote topic is refused. Names and regular expressions.",
    ),
    # Airflow
    Key(
        "airflow.conn.id",
        Type.STRING,
        None,
        "The Airflow connection (type kafka) that holds this cluster's client settings, for runs in Airflow.",
        Scope.CLUSTER,
    ),
    Key(
        "spark.conn.id",
        Type.STRING,
        "spark_connect_default",
        "The Airflow connection (type spark_connect) of the Spark Connect server that runs the flow's slots.",
    ),
    Key(
        "window.schedule",
        Type.SCHEDULE,
        "1 minute",
        "The schedule of windows: an interval, a cron line, or `@continuous`.",
    ),
    Key("window.max.lag.records", Type.LONG, None, "The gate warns above this lag, in records.", minimum=0),
    Key("window.max.lag.seconds", Type.LONG, None, "The gate warns above this lag, in seconds.", minimum=0),
    Key(
        "window.max.lag.blocks",
        Type.STRING,
        None,
        "The effect of too much lag besides the warning: `groups` holds group offsets back.",
        values=("groups",),
    ),
    Key(
        "window.idle.ms",
        Type.LONG,
        "5000",
        "The wait of `@continuous` after an empty or failed window, in ms.",
        minimum=0,
    ),
    Key(
        "window.deadline.ms",
        Type.LONG,
        None,
        "A run that has taken so much longer than the last ten on average is counted as late, in ms; not set: twice what a "
        "window may take.",
        minimum=1,
    ),
    Key(
        "window.trigger.records",
        Type.LONG,
        None,
        "Start a window also when the source has grown by this many records (offsets); not with `@continuous`.",
        minimum=1,
    ),
    Key(
        "audit.schedule",
        Type.SCHEDULE,
        "@hourly",
        "The intervals, of the records' timestamps, in which the past is compared again: an interval or a cron line.",
    ),
    Key(
        "backfill.into.suffix",
        Type.STRING,
        None,
        "In backfills, audits and replays started by hand: records before the first replicated offset are replicated "
        "too, from the source's first offset on, into topics of their own: remote topic and this suffix. Not set: refused.",
    ),
    Key(
        "on.failure.notifier",
        Type.STRING,
        None,
        "The Airflow notifier that is called once an incident: the path of its class, then its arguments as JSON, if any.",
    ),
    Key(
        "decide.users",
        Type.LIST,
        None,
        "Who may decide in Airflow what becomes of partitions that the gate holds, as users' ids there. Not set: all who may "
        "answer required actions of the flow's DAG `decide.…`.",
    ),
    Key(
        "retention.days",
        Type.INT,
        None,
        "Days to keep verified segment records, Data Docs and reports of audits; not set: for ever.",
        minimum=1,
    ),
    # Groups, topologies, errors
    Key(
        "offset.syncs.per.window",
        Type.INT,
        "10",
        "The most offset syncs between the first and the last of a segment.",
        minimum=0,
    ),
    Key(
        "aggregate",
        Type.BOOLEAN,
        "false",
        "Declares that other flows write the same remote topics: order is then promised per source only.",
        Scope.FLOW_ONLY,
    ),
    Key(
        "aggregate.groups.from",
        Type.STRING,
        "",
        "With aggregate = true: the alias of the source whose groups count. Checkpoints and group offsets of an aggregate "
        "are written for that source only, and for none where it is not set.",
    ),
    Key(
        "equal.cluster.ids.allowed",
        Type.BOOLEAN,
        "false",
        "Says that source and target are two clusters although their cluster ids are equal.",
        Scope.FLOW_ONLY,
    ),
    Key(
        "target.cluster.other.aliases",
        Type.LIST,
        "",
        "Other names by which other configurations call the target, names and regular expressions: what came from there "
        "under such a name is not replicated back.",
        Scope.FLOW_ONLY,
    ),
    Key(
        "failover.quiet.ms",
        Type.LONG,
        "5000",
        "How long no end offset of the source may move, and no transaction be open, before a planned failover drains it.",
        minimum=0,
    ),
    Key(
        "failover.rehearsal.schedule",
        Type.SCHEDULE,
        None,
        "The schedule of the DAG rehearse_failover.<source>.<target>: an interval or a cron line. Not set: it runs when it is "
        "triggered.",
    ),
    Key(
        "failover.rehearsal.records",
        Type.LONG,
        "1000000",
        "The newest source offsets of each partition whose records a rehearsal compares on both clusters.",
        minimum=1,
    ),
    Key(
        "streams.applications",
        Type.LIST,
        "",
        "The application.id of Kafka Streams applications whose changelog and repartition topics are replicated, whatever "
        "topics and topics.exclude say of them. What Streams has deleted from a repartition topic was handled: no loss.",
    ),
    Key(
        "streams.groups.ahead.allowed",
        Type.BOOLEAN,
        "false",
        "Says that the target's brokers are Kafka 4.2.1 or later, or that Streams applications start there with "
        "group.protocol=classic: 4.2.0 can't load a streams group that was given positions before it came (KAFKA-20254).",
        Scope.FLOW_ONLY,
    ),
    Key(
        "takeover.approval.enabled",
        Type.BOOLEAN,
        "false",
        "A DAG takeover.<source>.<target> shows what a take-over from MirrorMaker 2 would do, asks an operator, and does it.",
        Scope.FLOW_ONLY,
    ),
    Key(
        "takeover.offsets.topics",
        Type.LIST,
        "",
        "Topics on the target in which Connect's workers keep the progress of a MirrorMaker 2 (their offset.storage.topic, "
        "then the connector's own): partitions of which nothing is known here continue after it.",
        Scope.FLOW_ONLY,
    ),
    Key(
        "takeover.connector.name",
        Type.STRING,
        "MirrorSourceConnector",
        "With takeover.offsets.topics: the name of its MirrorSourceConnector there.",
        Scope.FLOW_ONLY,
    ),
    Key(
        "console.records.enabled",
        Type.BOOLEAN,
        "false",
        "The console shows single records of the flow's topics and their copies to whoever may see Airflow's connections.",
        Scope.FLOW_ONLY,
    ),
    Key(
        "console.records.mask",
        Type.LIST,
        "",
        "Names of JSON fields and of headers whose values the console never shows, in whatever case. With any named, a key or a "
        "value that is no JSON is not shown at all.",
        Scope.FLOW_ONLY,
    ),
    Key(
        "errors.deadletterqueue.topic.name",
        Type.STRING,
        "",
        "With errors.tolerance=all: the topic on the target for records that the remote topic does not take, made "
        "when it is missing; not set: they are only counted.",
    ),
    *moves.OF_FLOW,
)

"""The keys with a name in them: ``compare.<name>.…``, each a DAG that compares two clusters, whoever copied one to the other, and
``<source>-><target>.move.<name>.…``, each a move group of a migration."""

from __future__ import annotations

from airmirror.config.keys.key import BOOLEAN, LIST, LONG, SAMPLE, SCHEDULE, STRING, KeyScope

COMPARE = (
    STRING("source", "The cluster with the original records, by its alias; needed.", KeyScope.COMPARE),
    STRING("target", "The cluster with the copies, by its alias; needed.", KeyScope.COMPARE),
    LIST("topics = .*", "The source's topics that are compared: names and regular expressions.", KeyScope.COMPARE),
    LIST("topics.exclude =", "The source's topics that are not: names and regular expressions.", KeyScope.COMPARE),
    STRING(
        "rename = {topic}",
        "The target's topic for each of the source's, as in `east.{topic}`; `{topic#east.}` is its name without that beginning.",
        KeyScope.COMPARE,
    ),
    SCHEDULE(
        "schedule",
        "When they are compared: an interval or a cron line; not set: when the DAG is triggered.",
        KeyScope.COMPARE,
    ),
    SAMPLE(
        "sample",
        "Compare only this share of each partition (`1%`), or this many ranges of each (`20`); not set: everything.",
        KeyScope.COMPARE,
    ),
    LONG("sample.seed = 1", "The choice of the sample: the same seed chooses the same ranges.", KeyScope.COMPARE),
    BOOLEAN("ignore.timestamps = false", "Whether timestamps may differ.", KeyScope.COMPARE),
    STRING(
        "spark.conn.id",
        "The Airflow connection (type spark_connect) of the Spark Connect server that compares; not set: the task itself does.",
        KeyScope.COMPARE,
    ),
)

MOVE = (
    LIST("topics", "The source's topics that move together: names and regular expressions; needed.", KeyScope.MOVE),
    LIST(
        "groups",
        "The consumer groups that move with them: names and regular expressions; not set: those that read the topics.",
        KeyScope.MOVE,
    ),
    LIST(
        "transactional.ids",
        "The transactional ids that write them: names and regular expressions; not set: those that are found.",
        KeyScope.MOVE,
    ),
    STRING(
        "principals",
        "The principals that may, separated by semicolons as in super.users (`User:ann;User:CN=app,O=shop`); not set: those "
        "that ACLs name.",
        KeyScope.MOVE,
    ),
)

"""The keys ``compare.<name>.…``: each name is a DAG that compares two clusters, whoever copied one to the other."""

from __future__ import annotations

from airmirror.config.keys.key import Key, KeyScope, KeyType

KEYS = (
    Key(
        "source", KeyType.STRING, None, "The cluster with the original records, by its alias; needed.", KeyScope.COMPARE
    ),
    Key("target", KeyType.STRING, None, "The cluster with the copies, by its alias; needed.", KeyScope.COMPARE),
    Key(
        "topics",
        KeyType.LIST,
        ".*",
        "The source's topics that are compared: names and regular expressions.",
        KeyScope.COMPARE,
    ),
    Key(
        "topics.exclude",
        KeyType.LIST,
        "",
        "The source's topics that are not: names and regular expressions.",
        KeyScope.COMPARE,
    ),
    Key(
        "rename",
        KeyType.STRING,
        "{topic}",
        "The target's topic for each of the source's, as in `east.{topic}`; `{topic#east.}` is its name without that beginning.",
        KeyScope.COMPARE,
    ),
    Key(
        "schedule",
        KeyType.SCHEDULE,
        None,
        "When they are compared: an interval or a cron line; not set: when the DAG is triggered.",
        KeyScope.COMPARE,
    ),
    Key(
        "sample",
        KeyType.SAMPLE,
        None,
        "Compare only this share of each partition (`1%`), or this many ranges of each (`20`); not set: everything.",
        KeyScope.COMPARE,
    ),
    Key(
        "sample.seed",
        KeyType.LONG,
        "1",
        "The choice of the sample: the same seed chooses the same ranges.",
        KeyScope.COMPARE,
    ),
    Key("ignore.timestamps", KeyType.BOOLEAN, "false", "Whether timestamps may differ.", KeyScope.COMPARE),
    Key(
        "spark.conn.id",
        KeyType.STRING,
        None,
        "The Airflow connection (type spark_connect) of the Spark Connect server that compares; not set: the task itself does.",
        KeyScope.COMPARE,
    ),
)

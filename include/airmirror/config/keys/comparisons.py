"""The keys ``compare.<name>.…``: each name is a DAG that compares two clusters, whoever copied one to the other."""

from __future__ import annotations

from airmirror.config.keys.key import Key, Scope, Type

KEYS = (
    Key("source", Type.STRING, None, "The cluster with the original records, by its alias; needed.", Scope.COMPARE),
    Key("target", Type.STRING, None, "The cluster with the copies, by its alias; needed.", Scope.COMPARE),
    Key(
        "topics",
        Type.LIST,
        ".*",
        "The source's topics that are compared: names and regular expressions.",
        Scope.COMPARE,
    ),
    Key(
        "topics.exclude",
        Type.LIST,
        "",
        "The source's topics that are not: names and regular expressions.",
        Scope.COMPARE,
    ),
    Key(
        "rename",
        Type.STRING,
        "{topic}",
        "The target's topic for each of the source's, as in `east.{topic}`; `{topic#east.}` is its name without that beginning.",
        Scope.COMPARE,
    ),
    Key(
        "schedule",
        Type.SCHEDULE,
        None,
        "When they are compared: an interval or a cron line; not set: when the DAG is triggered.",
        Scope.COMPARE,
    ),
    Key(
        "sample",
        Type.SAMPLE,
        None,
        "Compare only this share of each partition (`1%`), or this many ranges of each (`20`); not set: everything.",
        Scope.COMPARE,
    ),
    Key(
        "sample.seed", Type.LONG, "1", "The choice of the sample: the same seed chooses the same ranges.", Scope.COMPARE
    ),
    Key("ignore.timestamps", Type.BOOLEAN, "false", "Whether timestamps may differ.", Scope.COMPARE),
    Key(
        "spark.conn.id",
        Type.STRING,
        None,
        "The Airflow connection (type spark_connect) of the Spark Connect server that compares; not set: the task itself does.",
        Scope.COMPARE,
    ),
)

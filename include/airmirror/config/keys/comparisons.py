"""The keys ``compare.<name>.…``: each name is a DAG that compares two clusters, whoever copied one to the other."""

from __future__ import annotations

from airmirror.config.keys.key import BOOLEAN, LIST, LONG, SAMPLE, SCHEDULE, STRING, KeyScope

KEYS = (
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

"""The keys with a name in them: ``compare.<name>.…``, each a DAG that compares two clusters, whoever copied one to the other, and
``<source>-><target>.move.<name>.…``, each a move group of a migration."""

from __future__ import annotations

from dataclasses import replace

from airmirror.config.keys.key import BOOLEAN, LIST, LONG, SAMPLE, SCHEDULE, STRING, Key, KeyScope


def _at(scope: KeyScope, *keys: Key) -> tuple[Key, ...]:
    return tuple(replace(key, scope=scope) for key in keys)


COMPARE = _at(
    KeyScope.COMPARE,
    STRING("source", "The cluster with the original records, by its alias; needed."),
    STRING("target", "The cluster with the copies, by its alias; needed."),
    LIST("topics = .*", "The source's topics that are compared: names and regular expressions."),
    LIST("topics.exclude =", "The source's topics that are not: names and regular expressions."),
    STRING(
        "rename = {topic}",
        "The target's topic for each of the source's, as in `east.{topic}`; `{topic#east.}` is its name without that beginning.",
    ),
    SCHEDULE("schedule", "When they are compared: an interval or a cron line; not set: when the DAG is triggered."),
    SAMPLE(
        "sample",
        "Compare only this share of each partition (`1%`), or this many ranges of each (`20`); not set: everything.",
    ),
    LONG("sample.seed = 1", "The choice of the sample: the same seed chooses the same ranges."),
    BOOLEAN("ignore.timestamps = false", "Whether timestamps may differ."),
    STRING(
        "spark.conn.id",
        "The Airflow connection (type spark_connect) of the Spark Connect server that compares; not set: the task itself does.",
    ),
)

MOVE = _at(
    KeyScope.MOVE,
    LIST("topics", "The source's topics that move together: names and regular expressions; needed."),
    LIST(
        "groups",
        "The consumer groups that move with them: names and regular expressions; not set: those that read the topics.",
    ),
    LIST(
        "transactional.ids",
        "The transactional ids that write them: names and regular expressions; not set: those that are found.",
    ),
    STRING(
        "principals",
        "The principals that may, separated by semicolons as in super.users (`User:ann;User:CN=app,O=shop`); not set: those "
        "that ACLs name.",
    ),
)

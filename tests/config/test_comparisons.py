"""``compare.<name>.…``: comparisons of the configuration, and what is wrong with them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from airmirror.config import ConfigurationError, explain, parse, survey
from airmirror.config.errors import UnknownComparison
from airmirror.config.values import names_topic, renamed

CLUSTERS = """\
clusters = east, west
east.bootstrap.servers = one:1
west.bootstrap.servers = two:2
east.security.protocol = SSL
east->west.enabled = true
"""
NIGHTLY = "compare.nightly.source = east\ncompare.nightly.target = west\n"


def test_a_comparison_has_defaults_and_its_clusters_settings() -> None:
    found = parse(CLUSTERS + NIGHTLY, "f").comparison("nightly")
    assert (found.source.bootstrap_servers, found.target.alias) == (("one:1",), "west")
    assert found.source.properties["security.protocol"] == "SSL"
    assert (found.topics, found.topics_exclude, found.rename, found.sample, found.sample_seed) == (
        (".*",),
        (),
        "{topic}",
        None,
        1,
    )
    assert found.schedule is None and found.spark_conn_id is None and not found.ignore_timestamps
    assert pickle.loads(pickle.dumps(found)) == found


def test_every_key_counts_and_leaves_the_flows_alone() -> None:
    lines = {
        "topics": "orders, pay.*",
        "topics.exclude": "x",
        "rename": "east.{topic}",
        "schedule": "0 3 * * *",
        "sample": "0.5%",
        "sample.seed": "9",
        "ignore.timestamps": "true",
        "spark.conn.id": "spark",
    }
    text = CLUSTERS + NIGHTLY + "".join(f"compare.nightly.{key} = {value}\n" for key, value in lines.items())
    configuration = parse(text, "f")
    found = configuration.comparison("nightly")
    assert (found.topics, found.topics_exclude, found.rename) == (("orders", "pay.*"), ("x",), "east.{topic}")
    assert (found.schedule, found.sample, found.sample_seed, found.ignore_timestamps) == ("0 3 * * *", "0.5%", 9, True)
    assert found.spark_conn_id == "spark" and not configuration.notes
    assert configuration.flow().topics == (".*",) and list(configuration.flows) == ["east->west"]
    assert {f"compare.<name>.{key}" for key in lines} < {row.name for row in explain()}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("compare.nightly.source = east", "compare.nightly.target: must be set"),
        (NIGHTLY.replace("west", "west2"), "must be one of east, west (it is 'west2')"),
        (NIGHTLY + "compare.nightly.topic = x", "the closest known one is compare.nightly.topics"),
        (NIGHTLY + "compare.nightly.rename = east", "has no {topic}"),
        (NIGHTLY + "compare.nightly.sample = some", "must be a share"),
        (NIGHTLY + "compare.nightly.sample = 0", "must be a share"),
        (NIGHTLY + "compare.nightly.sample = 999%", "must be a share"),
        (NIGHTLY + "compare.nightly.schedule = @continuous", "neither an interval nor a cron line"),
        (NIGHTLY + "compare.nightly.ignore.timestamps = maybe", "must be true or false"),
    ],
)
def test_what_is_wrong_with_one_is_said_and_leaves_the_rest(lines: str, said: str, tmp_path: Path) -> None:
    other = NIGHTLY.replace("nightly", "east")  # named like a cluster
    text = f"{CLUSTERS}{other}{lines}\n"
    with pytest.raises(ConfigurationError) as failed:
        parse(text, "f")
    assert said in str(failed.value)
    (tmp_path / "f").write_text(text)
    configuration = survey(tmp_path / "f").configuration
    assert configuration is not None and list(configuration.comparisons) == ["east"]
    assert [flow.name for flow in configuration.enabled] == ["east->west"]
    with pytest.raises(UnknownComparison, match="those that can: east"):
        configuration.comparison("nightly")


def test_a_cluster_that_something_is_wrong_with_is_not_compared(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(f"{CLUSTERS}{NIGHTLY}east.security.protocol = tls\n")
    configuration = survey(tmp_path / "f").configuration
    assert configuration is not None and not configuration.comparisons


def test_a_cluster_called_compare_has_its_keys_as_ever() -> None:
    text = (
        "clusters = compare, b\ncompare.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\ncompare->b.enabled = true\n"
    )
    configuration = parse(text, "f")
    assert configuration.flow().source.bootstrap_servers == ("x:1",) and not configuration.comparisons


def test_the_name_of_a_copy_of_a_copy() -> None:
    assert renamed("shadow.{topic#east.}", "east.orders.east.x") == "shadow.orders.east.x"
    assert renamed("{topic#east.}", "orders") == "orders" and renamed("a.{topic}", "b") == "a.b"
    assert names_topic("{topic#east.}") and not names_topic("{topic#}") and not names_topic("topic")

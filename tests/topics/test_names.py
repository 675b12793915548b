"""The topics that a flow replicates, their names, and the patterns that can't be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.config import ConfigurationError, Flow, parse
from airmirror.topics.names import came_back, check, named_like_source, select

CLUSTERS = "clusters = east, west\neast.bootstrap.servers=a:1\nwest.bootstrap.servers=b:1\neast->west.enabled=true\n"
NAMES = [
    "orders",
    "orders.tmp",
    "west.orders",
    "east.orders",
    "north.orders",
    "heartbeats",
    "__consumer_offsets",
    "mm2-offsets.west.internal",
    "airmirror-mappings.west.internal",
]


def flow(lines: str = "") -> Flow:
    return parse(f"{CLUSTERS}{lines}", "f").flow("east->west")


def test_everything_but_internal_topics_and_cycles() -> None:
    assert select(flow(), NAMES) == {
        "heartbeats": "east.heartbeats",
        "north.orders": "east.north.orders",
        "orders": "east.orders",
        "orders.tmp": "east.orders.tmp",
    }


def test_topics_named_as_if_they_came_from_their_own_cluster() -> None:
    """No flow brings them, and none takes them: who names them is told so. A migration does not take them for copies."""
    names = [*NAMES, "north.east.orders", "east.checkpoints.internal"]
    assert named_like_source(flow(), names) == ["east.orders"]
    assert named_like_source(flow("topics.exclude = east.*"), names) == []
    identity = flow("replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy")
    assert named_like_source(identity, names) == []
    back = came_back(flow(), names)
    assert {"west.orders", "north.east.orders"} <= back and not back & {"east.orders", "orders", "north.orders"}


def test_only_what_is_named_besides_heartbeats() -> None:
    assert select(flow("topics = orders.*\ntopics.exclude = .*\\\\.tmp"), NAMES) == {
        "heartbeats": "east.heartbeats",
        "orders": "east.orders",
    }
    assert select(flow("topics = orders\nheartbeats.replication.enabled = false"), NAMES) == {"orders": "east.orders"}
    assert select(flow("topics = payments\nheartbeats.replication.enabled = false"), NAMES) == {}


def test_names_by_the_flows_policy() -> None:
    assert select(flow("topics = orders\nreplication.policy.separator = _"), ["orders"]) == {"orders": "east_orders"}
    identity = flow("topics = west.orders\nreplication.policy.class = IdentityReplicationPolicy")
    assert select(identity, NAMES)["west.orders"] == "west.orders"


def test_a_policy_of_ones_own_names_and_breaks_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of docs/topics.md, as it stands there."""
    docs = Path(__file__).parents[2] / "docs" / "topics.md"
    (tmp_path / "suffix_policy.py").write_text(docs.read_text().partition("```python\n")[2].partition("```")[0])
    monkeypatch.syspath_prepend(tmp_path)
    own = flow("replication.policy.class = suffix_policy:Suffix\nreplication.policy.separator = -")
    names = ["orders", "orders-west", "orders-north", "orders-west-north", "mm2-offsets.west.internal"]
    assert select(own, names) == {"orders": "orders-east", "orders-north": "orders-north-east"}


def test_patterns_and_policies_are_checked_with_their_lines() -> None:
    configuration = parse(
        f"{CLUSTERS}topics = a, [x&&y]\nwest->east.groups = (\nwest->east.topics = fine\n"
        "west->east.replication.policy.class = com.example.Policy\n",
        "mm2.properties",
    )
    with pytest.raises(ConfigurationError) as caught:
        check(configuration)
    assert [str(problem) for problem in caught.value.problems] == [
        (
            "line 5: topics: regular expression '[x&&y]': an intersection of classes (&&) can't be translated, "
            "at position 2"
        ),
        (
            "line 8: west->east.replication.policy.class: replication.policy.class = com.example.Policy: no such "
            "policy here, and Java classes can't run; use one of DefaultReplicationPolicy, IdentityReplicationPolicy, "
            "LegacyReplicationPolicy or a Python class, as module:Class"
        ),
        "line 6: west->east.groups: regular expression '(': unclosed group, at position 0",
    ]
    check(parse(CLUSTERS, "f"))


def test_two_flows_whose_dags_would_have_one_name_are_told() -> None:
    """Airflow would keep the DAGs of one of them, and nothing would be copied of the other."""
    servers = "".join(f"{alias}.bootstrap.servers = {alias}:1\n" for alias in ("a", "a.b", "b.c", "c"))
    both = f"clusters = a, a.b, b.c, c\n{servers}a.b->c.enabled = true\na->b.c.enabled = %s\n"
    with pytest.raises(ConfigurationError) as caught:
        check(parse(both % "true", "f"))
    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (7, "a->b.c.enabled")
    assert "names of those of 'a.b->c', as replicate.a.b.c: give" in problem.message
    check(parse(both % "false", "f"))


@pytest.mark.parametrize(
    ("suffix", "reason"),
    [
        (".history ü", "letters, digits"),
        (".internal", "internal ones"),
        ("2", "which is a cluster's"),
        ("." + "x" * 230, "more than 249 characters"),
    ],
)
def test_a_suffix_of_backfills_that_makes_no_names(suffix: str, reason: str) -> None:
    lines = CLUSTERS.replace("west", "west, east2", 1) + "east2.bootstrap.servers=c:1\n"
    with pytest.raises(ConfigurationError, match=f"backfill.into.suffix.*{reason}"):
        check(parse(f"{lines}east->west.backfill.into.suffix = {suffix}\n", "f"))
    check(parse(f"{lines}east->west.backfill.into.suffix = .history\n", "f"))


def test_topics_of_streams_applications_are_opted_in() -> None:
    names = [
        "app-counts-changelog",
        "app-words-repartition",
        "app-orders",
        "other-counts-changelog",
        "west.app-x-changelog",
    ]
    wanted = "topics = orders\ntopics.exclude = .*-changelog\nstreams.applications = app, west.app\n"
    kept = "replication.policy.class = IdentityReplicationPolicy\n"
    assert list(select(flow(wanted), names)) == ["app-counts-changelog", "app-words-repartition"], "and no cycles"
    assert select(flow(wanted + kept), names[:2]) == {name: name for name in names[:2]}
    assert select(flow("topics = .*"), names[:1]) == {names[0]: f"east.{names[0]}"}


def test_the_group_of_a_streams_application_must_be_moved() -> None:
    check(parse(f"{CLUSTERS}streams.applications = app\ngroups = ap.*", "f"))
    with pytest.raises(ConfigurationError, match=r"line 5: streams\.applications: 'app' is not among groups"):
        check(parse(f"{CLUSTERS}streams.applications = app\ngroups = billing", "f"))

"""What stops a failover: each finding by itself, from made-up partitions and groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airmirror.offsets.translation import Reason
from airmirror.runbooks.failover.findings import Finding, findings
from airmirror.runbooks.failover.groups import GroupPoint
from airmirror.runbooks.failover.partitions import PartitionPoint
from airmirror.runbooks.failover.plan import REACH_SECONDS

THERE = PartitionPoint("orders", 0, "east.orders", 10, 10, 10, 1_000, 1_000, held="", lost_on_target=0)
GROUP = GroupPoint("billing", "orders", 0, 10, 1_000, "east.orders", 10, True, 0, "", None, "")


def found(partition: PartitionPoint | None = THERE, group: GroupPoint = GROUP, **other: Any) -> dict[str, Finding]:
    given: dict[str, Any] = {
        "source_error": "",
        "kinds": {},
        "unknown": (),
        "drift": (),
        "refused": [],
        "applications": (),
        "excluded": [],
        "stopped": (),
        "frozen": [],
    }
    given |= {"has_reverse": True, "is_frozen": False, "now_ms": 1_000} | other
    return {
        each.what: each
        for each in findings("east->west", partitions=[partition] if partition else [], groups=[group], **given)
    }


def test_nothing_stops_what_has_been_replicated() -> None:
    assert {each.level for each in found().values()} == {"ok"}


def test_no_way_out_asks_a_source_that_is_gone() -> None:
    for partition in (replace(THERE, verified_end=5), replace(THERE, lost_on_target=3)):
        said = found(partition, replace(GROUP, reason="no position"), source_error="it burns")
        ways = " ".join(each.way_out for each in said.values())
        assert "airmirror verify" not in ways and "airmirror groups" not in ways and "run-window" not in ways
    assert (
        "airmirror verify" in found(replace(THERE, lost_on_target=3))["the target still has what was verified"].way_out
    )


def test_of_a_flow_that_is_failed_over_no_window_is_wanted() -> None:
    for partition in (None, replace(THERE, source_end=15)):
        said = found(partition, is_frozen=True)
        assert not any("run-window" in each.way_out for each in said.values())
        assert any("failback plan" in each.way_out for each in said.values())


def test_a_topic_that_is_excluded_since_is_named() -> None:
    """The plan has no row of it: who looks for it is to see why."""
    replicated = found(excluded=["old"])["something was replicated"]
    assert replicated.level == "ok" and replicated.evidence.endswith("as the flow does not replicate it any more: old")


def test_topics_that_are_frozen_by_name_are_named_and_stop_nothing() -> None:
    """All of them are after a full migration: every rehearsal would fail, and a window copies nothing."""
    replicated = found(frozen=["moved"])["something was replicated"]
    assert replicated.level == "ok" and replicated.evidence.endswith("; left out, as it is frozen by name: moved")
    empty = replace(THERE, verified_end=0, committed_end=0, source_end=0)
    for nothing in (None, empty):
        left = found(nothing, frozen=["moved"])["something was replicated"]
        assert (left.level, left.way_out) == ("warn", "") and left.evidence.endswith("frozen by name: moved")
        assert found(nothing)["something was replicated"].level == "stop"
    more = found(replace(empty, source_end=5), frozen=["moved"])["something was replicated"]
    assert more.level == "stop" and "run-window" in more.way_out


@pytest.mark.parametrize(
    ("what", "given", "said", "way_out"),
    [
        ("nothing is held", replace(THERE, held="a person"), "orders-0", "airmirror hold list --flow 'east->west'"),
        (
            "the target still has what was verified",
            replace(THERE, lost_on_target=3),
            "orders-0 (3)",
            "airmirror verify",
        ),
        ("the target still has what was verified", replace(THERE, lost_on_target=-1), "without a leader", "bring"),
        (
            "consumer groups resume at the very next record",
            replace(GROUP, translation=None, reason=Reason.NOT_VERIFIED),
            "billing in orders-0",
            "airmirror groups --flow 'east->west'",
        ),
        ("no group is active on the target yet", replace(GROUP, state="Stable"), "billing", "stop these consumers"),
    ],
)
def test_what_stops(what: str, given: PartitionPoint | GroupPoint, said: str, way_out: str) -> None:
    every = found(given) if isinstance(given, PartitionPoint) else found(group=given)
    stopping = [each for each in every.values() if each.level == "stop"]
    assert [each.what for each in stopping] == [what], every
    assert said in stopping[0].evidence and way_out in stopping[0].way_out


def test_a_topic_that_is_not_replicated_stops() -> None:
    refused = found(refused=["orders: its remote topic is there already"])[
        "topics, configs and ACLs are as on the source"
    ]
    assert refused.level == "stop" and "its remote topic is there already" in refused.evidence


def test_a_source_is_given_up_after_as_long_as_the_document_says() -> None:
    assert REACH_SECONDS == 10.0, "docs/disaster-recovery.md: after ten seconds without an answer"

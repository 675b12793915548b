"""``airmirror compare`` as a person types it, without clusters: what is asked, and what its exit status says."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from airmirror.cli.main import app
from airmirror.clusters.protocol import routes
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.errors import ReadDenied
from airmirror.config import Cluster
from airmirror.errors import AirmirrorError
from airmirror.evidence import mirrors
from airmirror.evidence.asking import ComparisonRequest
from airmirror.evidence.borders import SampleSize
from airmirror.evidence.found import Difference, Findings, Kind
from airmirror.evidence.rows import ComparedLogs
from airmirror.partitions import TopicPartition

EQUAL = ComparedLogs("orders", "east.orders", 0, {Kind.EQUAL: 9}, findings=Findings(), offsets=9, of_offsets=9)


def lacking() -> ComparedLogs:
    found = Findings()
    found.counts[Kind.MISSING] = 1
    named = (Difference(Kind.MISSING, 3, -1),)
    return ComparedLogs("orders", "east.orders", 1, found.counts, named, findings=found, offsets=9, of_offsets=9)


class Comparing:
    """``compare_clusters`` with an answer of the test's (none: no cluster answers); ``asked``: what it was called with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.answer = list[ComparisonRequest](), list[ComparedLogs]()
        self.denied: AirmirrorError | None = None
        monkeypatch.setattr(mirrors, "compare_clusters", self._compare)
        monkeypatch.setattr(routes, "Routes", lambda *_: nullcontext(SimpleNamespace(refresh=self._refresh)))

    def _compare(self, source: Cluster, target: Cluster, asked: ComparisonRequest, **_: Any) -> list[ComparedLogs]:
        self.asked.append(asked)
        if self.denied:
            raise self.denied
        return self.answer

    def _refresh(self, _: list[str]) -> None:
        if not self.answer:
            raise BrokerUnreachable("source", "a:1", "connection refused")

    def __call__(self, answer: list[ComparedLogs], *options: str) -> Result:
        self.answer = answer
        return CliRunner().invoke(app, ["compare", "--source", "a:1", "--target", "b:1", *options])


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Comparing:
    return Comparing(monkeypatch)


def test_the_exit_status_tells_a_difference_from_a_cluster_that_does_not_answer(compare: Comparing) -> None:
    assert compare([EQUAL]).exit_code == 0
    differs = compare([EQUAL, lacking()])
    assert differs.exit_code == 1 and "orders-1: missing: source 3" in differs.stdout, differs.output
    silent = compare([])
    assert silent.exit_code == 75 and "a:1" in silent.stderr, silent.output
    compare.denied = ReadDenied("source", TopicPartition("orders", 0), "TOPIC_AUTHORIZATION_FAILED")
    assert compare([EQUAL]).exit_code == 2, "nothing is known to differ"


def test_what_is_asked_is_what_was_typed(compare: Comparing) -> None:
    times = ("--from", "2026-11-01T00:00:01Z", "--to", "2026-11-01T00:00:02")
    typed = ("--topics", "orders, pay.*", "--exclude", "pay.old", "--rename", "east.{topic}", "--sample", "20")
    compare([EQUAL], *times, *typed, "--seed", "7", "--ignore-timestamps", "--uncommitted")
    compare([EQUAL])
    second = 1_793_491_201_000
    assert compare.asked == [
        ComparisonRequest(
            topics=("orders", "pay.*"),
            exclude=("pay.old",),
            rename="east.{topic}",
            first_ms=second,
            end_ms=second + 1000,
            times=False,
            is_committed=False,
            sample=SampleSize(ranges=20, seed=7),
        ),
        ComparisonRequest((".*",)),
    ]


def test_a_sample_that_shows_no_difference_is_not_called_equal(compare: Comparing) -> None:
    part = ComparedLogs("orders", "east.orders", 0, {Kind.EQUAL: 9}, findings=Findings(), offsets=9, of_offsets=90)
    for row, said in ((EQUAL, True), (part, None), (lacking(), False)):
        found = json.loads(compare([row], "--sample", "1", "--json").stdout)
        assert found["is_equal"] is said and found["partitions"][0]["is_equal"] is said

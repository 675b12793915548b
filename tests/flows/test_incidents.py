"""A decision is about what the gate really holds: never about what a run's configuration says."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airmirror.flows.decisions import held_by_gate
from airmirror.flows.gates import expectations_of, verify_flow
from airmirror.flows.holds import add_holds
from airmirror.flows.prepare import prepare
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment, deployment
from airmirror.on_airflow.question import AGAIN, KEEP, LET_PASS, VERIFY_AGAIN
from airmirror.on_airflow.tasks import decide as decide_work
from airmirror.on_airflow.tasks.approvals import Approval
from airmirror.on_airflow.tasks.decide import NoPartitionsNamed, ask, carry_out
from airmirror.on_airflow.tasks.telling import WIDTH, NotVerified
from airmirror.windows.window import WindowOrder, run_window
from airmirror.wire.mappings import GATE, Action, Hold
from airmirror_local.brokers import Broker
from flows.test_gates import SUITE
from support.flows import Mirror, in_this_process, mirror
from support.kept import in_ledger
from support.topics import Record, produce


@pytest.fixture
def flow(east: Broker, west: Broker, tmp_path: Path) -> Mirror:
    """Three partitions, of which the gate holds the first two."""
    found = mirror(east, west, tmp_path, partitions=3)
    for partition, count in ((0, 50), (1, 20), (2, 5)):
        produce(east, found.topic, [Record(b"value-%d" % n) for n in range(count)], partition=partition)
    suites = tmp_path / "expectations"
    suites.mkdir()
    (suites / "mine.yaml").write_text(SUITE % "copied")
    run_window(
        found.flow,
        found.opened.ledger,
        prepare(found.opened).topics,
        in_this_process,
        WindowOrder("w", slots=lambda _: 2, advance=False),
    )
    verify_flow(found.opened, expectations_of(suites), window="w#verify", trusted={"w"})
    return found


@pytest.fixture
def place(flow: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    class Same:
        def __init__(self, *_: object) -> None: ...

        def __enter__(self) -> object:
            return flow.opened

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(decide_work, "opened_flow", Same)
    monkeypatch.setattr("airmirror.on_airflow.tasks.window.opened_flow", Same)
    return replace(deployment(), expectations=tmp_path / "expectations")


def answered(place: Deployment, flow: Mirror, option: str, *asked: tuple[str, int, int]) -> None:
    carry_out(
        deployment=place,
        flow=flow.flow.name,
        window="decide",
        answer=Approval(option, "a test", "ada", datetime.now(UTC), asked),
        name=option,
        selection=Selection(),
    )


def verified(flow: Mirror) -> dict[int, int]:
    return {partition: found.offset for (_, partition), found in flow.opened.ledger.verified().items()}


def test_only_what_is_held_is_asked_about_and_acted_on(
    flow: Mirror, place: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    name, first, second, healthy = flow.flow.name, (flow.topic, 0, 49), (flow.topic, 1, 19), (flow.topic, 2, 4)
    assert [item.incident for item in held_by_gate(flow.opened)] == [first, second]
    assert [item.records for item in held_by_gate(flow.opened)] == [50, 20]
    everything = ask(place, name, None, most=100)
    assert (
        everything is not None
        and everything.about == [list(first), list(second)]
        and "2 partitions" in everything.subject
    )
    # A configuration may only narrow down; a healthy partition, or another offset, is nothing to decide about.
    narrowed = ask(place, name, [list(healthy), list(second), [flow.topic, 0, 4_611_686_018_427_387_904]], most=100)
    assert narrowed is not None and narrowed.about == [list(second)]
    assert f"| {flow.topic} | 1 | 0 to 19 | 20 |" in narrowed.body.replace("\\", "")
    assert ask(place, name, [list(healthy)], most=100) is None
    assert (bounded := ask(place, name, None, most=1)) is not None and bounded.about == [list(first)]
    with pytest.raises(NoPartitionsNamed, match=r"held.*list of"):
        ask(place, name, [["orders"]], most=100)
    # Whatever is handed over between the two tasks, the healthy partition is left alone.
    answered(place, flow, AGAIN, healthy)
    answered(place, flow, LET_PASS, (flow.topic, 0, 10**9), healthy)
    answered(place, flow, KEEP, first)
    assert flow.opened.ledger.decisions() == [] and verified(flow) == {2: 4}
    with pytest.raises(NotVerified) as error:
        answered(place, flow, VERIFY_AGAIN, first)
    assert "2 partitions still held by the gate, nothing new" in str(error.value).splitlines()[0]
    answered(place, flow, LET_PASS, second, healthy)
    assert verified(flow) == {1: 19, 2: 4}
    decided = [(each.partition, each.action, each.by, each.reason) for each in flow.opened.ledger.decisions()]
    assert decided == [(0, Action.VERIFY_AGAIN, "ada", "a test"), (1, Action.LET_PASS, "ada", "a test")]
    answered(place, flow, LET_PASS, second)  # the task tried again: it is done
    assert len(flow.opened.ledger.decisions()) == 2


def test_what_somebody_holds_is_not_the_gates(flow: Mirror, place: Deployment) -> None:
    add_holds(flow.opened, flow.topic, [2], reason="schema change", by="ann")
    assert [item.partition for item in held_by_gate(flow.opened)] == [0, 1]


def test_a_red_run_says_what_where_since_when_and_what_to_do(flow: Mirror, place: Deployment) -> None:
    from airmirror.on_airflow.tasks.window import verify

    def red(window: str, show: Callable[[str], None]) -> list[str]:
        with pytest.raises(NotVerified) as caught:
            verify(place, flow.flow.name, window, (), Selection(), show=show)
        return str(caught.value).splitlines()

    pages: list[str] = []
    lines = red("second#verify", pages.append)
    assert "did not pass" in in_ledger(flow.opened.ledger.engine, pages[0])  # also of a verdict that is red
    assert lines[0] == f"flow '{flow.flow.name}': 2 partitions still held by the gate, nothing new"
    first = " ".join(" ".join(lines[1:-2]).split())
    assert f"{flow.topic}-0: offsets 0 to 49" in first and "(still, since 20" in first and "first in w)" in first
    assert "Stocks must stay quiet" in first and all(len(line) <= WIDTH for line in lines[1:-2])
    assert lines[-2:] == [
        f"To decide: Required Actions of decide.{flow.flow.name.replace('->', '.')}.",
        f"Or mend the cause, then: `airmirror verify --flow '{flow.flow.name}'`",
    ]
    assert all(line.count("did not pass the gate") <= 1 for line in lines)
    # A new cause stands out, and comes first.
    (place.expectations / "mine.yaml").write_text(SUITE.replace("max_value: 10", "max_value: 30") % "offsets")
    lines = red("third#verify", pages.append)
    assert "1 partition did not pass the gate" in lines[0] and lines[1].startswith("A NEW CAUSE: ")
    assert all(len(line) <= 100 for line in lines[:1])


def test_a_reason_that_partitions_have_in_common_is_said_once() -> None:
    from airmirror.on_airflow.tasks.telling import MOST_NAMED, not_verified
    from airmirror.windows.errors import GateFailed
    from airmirror.windows.judging import Verdict, Verification

    def failed(partition: int, reason: str = "too many (suite {} mine)", held: Hold | None = None) -> Verdict:
        error = GateFailed(cluster="east", topic="orders", partition=partition, first=10, last=19, reason=reason)
        return Verdict(topic="orders", partition=partition, offset=19, records=10, error=error, held=held)

    hold = Hold(
        topic="orders", partition=9, offset=10, reason="too many (suite {} mine)", window="first#1", by=GATE, time_ms=0
    )
    verdicts = (*(failed(partition) for partition in range(MOST_NAMED + 3)), failed(30, "late"), failed(9, held=hold))
    error = not_verified("east->west", "w", Verification((), verdicts))
    text = " ".join(str(error).split())
    assert text.count("too many (suite {} mine)") == 2 and text.count("late") == 1
    assert "orders-0: offsets 10 to 19; orders-1: " in text and "and 3 more did not pass the gate: too many" in text
    assert "9 partitions did not pass the gate, 1 more still held" in text and "orders-9: offsets 10 to 19 did" in text
    assert len(str(error).splitlines()[0]) <= WIDTH + len("NotVerified: ")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_red_run_wraps_what_it_says_and_leaves_commands_whole() -> None:
    from airmirror.on_airflow.tasks.telling import PartitionsFailed

    how = "`airmirror reset --topic long-topic-name --start-again --recreate-remote-topic --flow 'east->west'`"
    error = "long-topic-name-0: cluster 'west' holds records that this flow did not write; stop the other writer, then"
    lines = str(PartitionsFailed("east->west", "w", (f"{error} begin again: {how}",), final=True)).splitlines()
    assert how in [line.strip() for line in lines]
    assert all(len(line) <= WIDTH for line in lines[1:] if how not in line)
    assert " ".join(line.strip() for line in lines[1:]) == f"{error} begin again: {how}"

"""What a target keeps of producers is lost, or taken by somebody else, in mid-window: nothing is lost, nothing comes twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.slot import attempts
from airmirror.slot import source as source_module
from airmirror.slot.contract import transactional_id
from airmirror.slot.intake import Intake
from airmirror_local.brokers import Broker
from support.faults import filled
from support.moves import await_forgotten, forgetting
from support.sides import Sides
from support.topics import SECONDS

TIMES = 3


@pytest.mark.parametrize("writes", [False, True])
def test_somebody_else_initialises_our_transactional_id(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: bool
) -> None:
    """Each time the slot is fenced, finds its lease alive, and begins again at what is committed (invariants B and C).

    What the other one has written by then, and not committed, is aborted by our next initialisation.
    """
    flow = filled(east, west, tmp_path)
    name = transactional_id(flow.flow, 0)
    attempt, take = attempts._attempt, Intake.take
    begun, taken = list[bool](), list[bool]()

    def counted(**given: object) -> bool:
        begun.append(True)
        return attempt(**given)  # type: ignore[arg-type]

    def initialise(self: Intake, *given: object) -> None:
        take(self, *given)  # type: ignore[arg-type]
        if len(taken) == min(len(begun), TIMES):
            return
        taken.append(True)  # once in each of the first attempts
        producer = Producer({"bootstrap.servers": west.bootstrap, "transactional.id": name, "log_level": 0})
        producer.init_transactions(SECONDS)
        if writes:
            producer.begin_transaction()
            producer.produce(flow.remote_topic, b"not ours", partition=0)
            producer.flush(SECONDS)

    with monkeypatch.context() as patch:
        patch.setattr(attempts, "_attempt", counted)
        patch.setattr(Intake, "take", initialise)
        patch.setattr(source_module, "FETCH_BYTES", 4096)
        patch.setattr(source_module, "LEAST_PARTITION_BYTES", 2048)
        result = flow.run(slots=1)
    assert len(taken) == TIMES and len(begun) == TIMES + 1
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == 900


@pytest.mark.long
def test_producers_are_forgotten(sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker knows nothing of a producer between two of its transactions (KIP-360), many times in a window."""
    flow, west = filled(sides.east, sides.west, tmp_path), sides.west
    ends, end = list[int](), TransactionalId.end

    def waiting(self: TransactionalId, commit: bool) -> None:
        end(self, commit)
        ends.append(self.producer_id)
        if len(ends) <= TIMES:
            await_forgotten(west, flow.remote_topic, range(2))

    with forgetting(west), monkeypatch.context() as patch:
        patch.setattr(TransactionalId, "end", waiting)
        patch.setattr(source_module, "FETCH_BYTES", 4096)
        patch.setattr(source_module, "LEAST_PARTITION_BYTES", 2048)
        result = flow.run(slots=1)
    assert len(ends) > TIMES and result.is_verified, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == 900

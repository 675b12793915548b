"""Groups that an undo puts back, and what a cluster answers; without brokers."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.clusters.protocol.groups import Committed
from airmirror.partitions import TopicPartition
from airmirror.runbooks import moving
from airmirror.runbooks.moving import GroupsActive, PositionsRefused, PutBack, put_back
from airmirror.wire.moves import GroupMove

KEY = TopicPartition("east.orders", 0)


def moved(before: int, now: int) -> PutBack:
    """A group that was moved to 9."""
    return PutBack(GroupMove("billing", *KEY, "failover-x", before, 9, 1, ""), now, "Empty")


def writer(
    errors: Mapping[tuple[str, TopicPartition], int], monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, list[object]]:
    """Who puts back on a cluster that answers ``errors`` to deletions, and what it has written."""
    written = list[object]()
    monkeypatch.setattr(moving, "commit_offsets", lambda target, offsets: written.append(offsets) or {})
    monkeypatch.setattr(moving, "delete_offsets", lambda target, nowhere: dict(errors) if nowhere else {})
    journal = SimpleNamespace(target=SimpleNamespace(alias="west"), flow=SimpleNamespace(name="east->west"))
    return SimpleNamespace(journal=journal, check=lambda: None, write=written.append), written


def test_a_right_that_is_missing_is_not_told_as_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stood nowhere has a position deleted: that takes a right that no window needs, and nobody can stop a consumer."""
    denied, written = writer({("billing", KEY): 30}, monkeypatch)
    with pytest.raises(
        PositionsRefused, match=r"'west'.* Delete (.|\n)*billing in east\.orders-0: GROUP_AUTHORIZATION_FAILED"
    ):
        put_back(denied, [moved(-1, 9)])
    for active in (68, 86):
        joined, _ = writer({("billing", KEY): active}, monkeypatch)
        with pytest.raises(GroupsActive, match="billing") as refused:
            put_back(joined, [moved(-1, 9)])
        assert "no group was moved" not in str(refused.value)  # others may have been put back
    assert written == [{}]  # and no move was forgotten


def test_a_position_that_has_expired_meanwhile_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """No consumer has committed -1."""
    expired, (there, written) = moved(5, -1), writer({}, monkeypatch)
    assert not expired.why_not and "has committed 12 since" in moved(5, 12).why_not
    put_back(there, [expired])
    assert [each for each in written if each] == [{"billing": {KEY: Committed(5)}}, [(expired.move.encode_key(), None)]]

"""What came of a procedure, as other clients than the product's own see it; ``PROOFS`` by the names of ``ORDERS``."""

from __future__ import annotations

import json
from collections.abc import Callable

from airmirror.wire.owners import Owner
from airmirror_local.brokers import Broker
from pairs.estate import OTHERS, SHOP, Estate, numbered
from support.groups import committed
from support.topics import Record, end_offsets, read_all

NEW = 300  # the first of the records that a window is to copy


def _records(side: Broker, topic: str) -> list[Record]:
    """The records of a topic, without those of another source."""
    return [each for each in read_all(side, topic)[0] if not (each.value or b"").startswith(OTHERS)]


def _values(side: Broker, topic: str) -> list[bytes | None]:
    return [each.value for each in _records(side, topic)]


def _next(side: Broker, topic: str, offset: int) -> bytes | None:
    """The value of the record that a group reads next."""
    return next((each.value for each in _records(side, topic) if each.offset >= offset), None)


def _sides(estate: Estate, topic: str) -> list[tuple[Broker, str]]:
    """A topic on the source, and its remote topic."""
    return [(estate.both.east, topic), (estate.both.west, estate.names[topic])]


def _resumes(estate: Estate, topic: str) -> None:
    """The group of a topic reads the same record next on both sides."""
    both, group = estate.both, estate.groups[topic]
    here, there = committed(both.east, group)[topic, 0], committed(both.west, group)[estate.names[topic], 0]
    found = _next(both.east, topic, here)
    assert found is not None and found == _next(both.west, estate.names[topic], there)


def _equal(estate: Estate) -> None:
    """Both sides hold the same records, each once, in order; and the next window has nothing to do."""
    for topic in estate.names:
        _same(estate, topic)
    _nothing_left(estate)


def _same(estate: Estate, topic: str) -> None:
    here, there = (_values(*side) for side in _sides(estate, topic))
    assert here == there and len(set(here)) == len(here)


def _nothing_left(estate: Estate) -> None:
    result = estate.both.window(estate.both.forward)
    assert result.copied == 0 and result.is_verified


def _copied(estate: Estate) -> None:
    """What was new is there, of what the source owns alone; and the next window has nothing to do."""
    new = {each.value for each in numbered(4, NEW)}
    for topic in estate.names:
        here, there = (_values(*side) for side in _sides(estate, topic))
        assert new <= {*here}
        if estate.owners.owner(topic) is Owner.SOURCE:
            _same(estate, topic)
        else:
            assert not new & {*there}
    _nothing_left(estate)


def _failed_over(estate: Estate) -> None:
    assert estate.owners.whole is not None
    for topic in estate.names:
        if not estate.owners.is_apart(topic):
            _resumes(estate, topic)


def _open_again(estate: Estate) -> None:
    assert estate.owners.whole is None and estate.positions["west"] == {}


def _failed_back(estate: Estate) -> None:
    assert [topic for topic in estate.owners.frozen if not estate.owners.is_apart(topic)] == []
    for topic in estate.names:
        if not estate.owners.is_apart(topic):
            _resumes(estate, topic)
    _equal(estate)


def _returns_no_more(estate: Estate) -> None:
    assert estate.owners.whole is not None and estate.owners.returning() == {}


def _moved(estate: Estate) -> None:
    assert estate.owners.owner(estate.bill) is Owner.TARGET
    _resumes(estate, estate.bill)


def _moved_and_returns(estate: Estate) -> None:
    assert estate.owners.returning() == {estate.names[estate.bill]: estate.bill}
    _resumes(estate, estate.bill)


def _moved_back(estate: Estate) -> None:
    """The group reads on the source what it would have read next; one that came back with its records stands on both sides."""
    at = committed(estate.both.east, estate.groups[estate.shop])[estate.shop, 0]
    assert estate.owners.owner(estate.shop) is Owner.SOURCE
    found = _next(estate.both.east, estate.shop, at)
    assert found is not None and found == _next(estate.both.east, estate.shop, SHOP)
    if estate.shop in estate.positions["west"]:
        _resumes(estate, estate.shop)


def _taken_over(estate: Estate) -> None:
    """The next window copies nothing again."""
    assert all(row.error is None for row in estate.both.window(estate.both.forward).rows if row.topic == estate.shop)
    for topic, remote in estate.names.items():
        here, there = (_values(*side) for side in _sides(estate, topic))
        assert here[: len(there)] == there and (topic == estate.bill or len(here) == len(there)), remote


def _handed_back(estate: Estate) -> None:
    """MirrorMaker 2 begins at the very record after those that the target has, in all topics: else from their beginning."""
    found = set()
    for record in read_all(estate.both.west, estate.workers)[0]:
        (topic,) = (each for each in estate.names if each.encode() in (record.key or b""))
        offset = json.loads(record.value or b"{}")["offset"]
        here, there = (_records(*side) for side in _sides(estate, topic))
        assert len([each for each in here if each.offset <= offset]) == len(there)
        found.add(topic)
    assert found == {*estate.names}


def _unfrozen(estate: Estate) -> None:
    assert estate.owners.whole is None
    _equal(estate)


def _begun_again(estate: Estate) -> None:
    """The remote topic is empty, and the next window fills it."""
    assert end_offsets(estate.both.west, estate.names[estate.bill]) == {0: 0}
    estate.both.window(estate.both.forward)
    here, there = ([each.content for each in read_all(*side)[0]] for side in _sides(estate, estate.bill))
    assert here == there


PROOFS: dict[str, Callable[[Estate], None]] = {
    "failover": _failed_over,
    "undo of a failover": _open_again,
    "failback": _failed_back,
    "undo of a failback": _returns_no_more,
    "migration": _moved,
    "migration with a return": _moved_and_returns,
    "undo of a migration": _moved_back,
    "take-over": _taken_over,
    "hand-back": _handed_back,
    "window": _copied,
    "unfreeze": _unfrozen,
    "reset": _begun_again,
}

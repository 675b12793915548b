"""Who may write a topic: each transition from each state, and what an order names; without brokers."""

from __future__ import annotations

from itertools import product

import pytest

from airmirror.wire.owners import NEXT, WHOLE, Change, OrderScope, Owner, Owners, Signed, after, changed, named

S, T, G, D = Owner.SOURCE, Owner.TARGET, Owner.RETURNING, Owner.RETURNED
SIGNED = Signed("w", 5, 7, " why ", " ada ")
# What a change makes of each state; those that are not there change nothing.
TABLE = {
    (Change.FREEZE, S): T,
    (Change.UNFREEZE, T): S,
    (Change.BEGIN, T): G,
    (Change.BEGIN, D): G,
    (Change.END, G): D,
    (Change.GIVE_UP, D): T,
    (Change.FINISH, D): S,
    (Change.FINISH, T): S,
}
WAY: dict[Owner, list[Change]] = {
    S: [],
    T: [Change.FREEZE],
    G: [Change.FREEZE, Change.BEGIN],
    D: [Change.FREEZE, Change.BEGIN, Change.END],
}


def take(owners: Owners, *changes: Change, topics: tuple[str, ...] = (), returns: tuple[str, ...] = ()) -> Owners:
    """The owners after an order's changes; ``returns``: the topics that it lets return."""
    for change in changes:
        back = change in (Change.BEGIN, Change.END, Change.GIVE_UP)
        which = (topics or returns) if back else named(owners, topics)
        remote = {topic: f"east.{topic}" for topic in which} if change is Change.BEGIN else None
        scope = OrderScope.TOPIC if topics else OrderScope.FLOW
        owners = after(owners, changed(owners, change, which, SIGNED, scope=scope, remote=remote))
    return owners


@pytest.mark.parametrize(("change", "owner"), list(product(Change, Owner)))
def test_each_transition_from_each_state(change: Change, owner: Owner) -> None:
    before = take(Owners(), *WAY[owner], topics=("orders",))
    assert before.owner("orders") is owner and before.owner("other") is S
    written = changed(before, change, ["orders"], SIGNED, scope=OrderScope.TOPIC)
    assert [each.owner for each in written] == ([TABLE[change, owner]] if (change, owner) in TABLE else [])
    assert after(before, written).owner("orders") is TABLE.get((change, owner), owner)
    assert {(each, of): new for each, states in NEXT.items() for of, new in states.items()} == TABLE


def test_an_order_changes_nothing_that_it_does_not_name() -> None:
    """Two move groups; then a failover and a failback of the flow, in any order with what one of them does."""
    shop = take(Owners(), Change.FREEZE, topics=("shop",))
    both = take(shop, Change.FREEZE, Change.BEGIN, topics=("bill",))
    for change in Change:
        assert take(both, change, topics=("shop",)).records["bill"] == both.records["bill"]
        if change in (Change.FREEZE, Change.UNFREEZE, Change.FINISH):
            of_flow = take(both, change)
            assert (of_flow.owner("shop"), of_flow.owner("bill")) == (T, G), "they are apart"
    over = take(take(both, Change.FREEZE), Change.BEGIN, Change.END, Change.FINISH, returns=("orders",))
    assert [over.owner(topic) for topic in ("orders", "other", "shop", "bill")] == [S, S, T, G]
    assert over.whole is None and over.shut is None and over.frozen.keys() == {"shop", "bill"}


def test_a_topics_own_record_overrides_that_of_the_flow() -> None:
    shut = take(Owners(), Change.FREEZE)
    assert shut.shut is not None and shut.owner("of tomorrow") is T
    alone = take(shut, Change.BEGIN, Change.END, Change.FINISH, topics=("orders",))
    assert (alone.owner("orders"), alone.owner("other")) == (S, T) and alone.whole is not None and alone.shut is None
    again = take(alone, Change.FREEZE)
    assert again.owner("orders") is T and again.shut is not None, "a failover takes all that is the source's"
    assert take(again, Change.UNFREEZE).frozen == {}, "and opened, the flow has all of it again"


def test_what_returns_is_told_with_its_remote_topic_and_by_whose_order() -> None:
    owners = take(take(Owners(), Change.FREEZE), Change.BEGIN, returns=("orders",))
    owners = take(owners, Change.FREEZE, Change.BEGIN, topics=("shop",))
    assert owners.returning() == {"east.orders": "orders", "east.shop": "shop"}
    assert owners.returning_by(()) == {"east.orders": "orders"} and owners.returning_by(["shop"]) == {
        "east.shop": "shop"
    }
    ended = take(owners, Change.END, topics=("orders",))
    assert ended.returning((Owner.RETURNING,)) == {"east.shop": "shop"} and ended.returning() == owners.returning()


def test_a_record_keeps_when_the_topic_was_taken_from_the_source() -> None:
    (frozen,) = changed(Owners(), Change.FREEZE, [WHOLE], SIGNED, scope=OrderScope.FLOW)
    later = Signed("v", 6, 9, "back", "bob")
    (begun,) = changed(
        Owners.of([frozen]), Change.BEGIN, ["orders"], later, scope=OrderScope.FLOW, remote={"orders": "east.orders"}
    )
    assert (begun.frozen_ms, begun.time_ms, begun.window, begun.by, frozen.reason) == (7, 9, "v", "bob", "why")
    assert frozen.frozen_offset == begun.frozen_offset == 5, "of the lease that froze it"

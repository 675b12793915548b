"""The explored scopes of who may write a topic, and for every rule one in which its absence shows."""

from __future__ import annotations

from airmirror.wire.owners import Change, OrderScope, Owners, Signed, after, changed
from model.owners import BACKWARD, BILL, SHOP, THERE, Process, Rules, World, order, window

SIGNED = Signed("", 0, 0, "", "")


def begun(*taken: tuple[str, tuple[Change, ...]]) -> tuple:  # type: ignore[type-arg]
    """The records when each topic was taken so far by an order that named it."""
    owners = Owners()
    for topic, changes in taken:
        for change in changes:
            owners = after(
                owners,
                changed(owners, change, [topic], SIGNED, scope=OrderScope.TOPIC, remote={topic: f"east.{topic}"}),
            )
    return tuple(sorted(owners.records.values(), key=lambda each: each.topic))


RETURNING = begun((SHOP, (Change.FREEZE, Change.BEGIN)))
RETURNED = begun((SHOP, (Change.FREEZE, Change.BEGIN, Change.END)))
BOTH = begun((SHOP, (Change.FREEZE, Change.BEGIN)), (BILL, (Change.FREEZE, Change.BEGIN)))
ONE = (SHOP,)


def scopes(rules: Rules) -> dict[str, World]:
    def of(*processes: Process, records: tuple = ()) -> World:  # type: ignore[type-arg]
        return World(processes, records)

    def the(name: str, *changes: Change, topics: tuple[str, ...] = ONE, back: bool = False) -> Process:
        return order(name, *changes, topics=topics, back=back, rules=rules)

    there, back = window(THERE, rules), window(BACKWARD, rules)
    end, give_up = the("end", Change.END, back=True), the("undo", Change.END, Change.GIVE_UP, back=True)
    finish = the("finish", Change.FINISH, back=rules.fences_reverse)
    opens = the("unfreeze", Change.UNFREEZE)
    return {
        "a freeze, and windows": of(the("freeze", Change.FREEZE), there, there),
        "frozen, begun": of(the("freeze", Change.FREEZE), the("begin", Change.BEGIN, back=True), there, back),
        "a return ends, and is finished": of(end, finish, back, records=RETURNING),
        "a return is given up, and unfrozen": of(give_up, opens, back, back, records=RETURNING),
        "a return is unfrozen by force": of(opens, back, records=RETURNING),
        "a move group ends its return, another one's continues": of(end, back, records=BOTH),
        "a failover of the flow, and its undo": of(
            the("fail over", Change.FREEZE, topics=()), the("undo", Change.UNFREEZE, topics=()), there, records=RETURNED
        ),
        "what was moved, and an order for the flow": of(
            the("unfreeze", Change.UNFREEZE, topics=()), there, records=begun((SHOP, (Change.FREEZE,)))
        ),
    }


BROKEN = {
    "a freeze is appended by one who slept (A8)": (
        Rules(transaction=False),
        "a freeze, and windows",
        "shop is copied",
    ),
    "a window looks before its lease": (
        Rules(looks_under_lease=False),
        "a return ends, and is finished",
        "shop is copied back",
    ),
    "a return is unfrozen before it ended": (
        Rules(ends_before_unfreezing=False),
        "a return is unfrozen by force",
        "shop is copied back",
    ),
    "a return is finished without a fence": (
        Rules(fences_reverse=False),
        "a return ends, and is finished",
        "shop is copied back",
    ),
    "a return is given up by one who slept": (
        Rules(checks_back=False),
        "a return is given up, and unfrozen",
        "shop is copied back",
    ),
    "an undo ends all that returns (A1)": (
        Rules(only_named=False),
        "a move group ends its return, another one's continues",
        "bill is RETURNED",
    ),
    "an order for the flow unfreezes what was moved (A1)": (
        Rules(apart=False),
        "what was moved, and an order for the flow",
        "shop is SOURCE",
    ),
}

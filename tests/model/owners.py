"""Who may write a topic, explored: windows of both directions and orders, each asleep between two steps for as long as you like.

Every step of every process may come at any time; a lease may be taken from whoever sleeps. Transitions are the product's own
(``wire.owners``). What must never be: a window of either direction that writes for a topic that is not its own, and an order that
changes what it does not name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from airmirror.wire.owners import BACK, Change, OrderScope, Owner, Owners, Ownership, Signed, after, changed, named

SHOP, BILL = "shop", "bill"
THERE, BACKWARD = (
    0,
    1,
)  # the flow that brought the topics, and the one by which they return: each has a lease and ids of its own


@dataclass(frozen=True)
class Rules:
    """The protocol as it is meant; False puts back a fault."""

    transaction: bool = True  # A8: owners are committed under an id that the next lease fences, and not appended
    looks_under_lease: bool = True  # a window of the reverse flow looks when it has taken the lease, and not before
    ends_before_unfreezing: bool = True  # what returns is ended before it is unfrozen
    fences_reverse: bool = True  # who finishes a return fences the reverse flow first
    checks_back: bool = (
        True  # who gives a return up looks whether the reverse flow's lease still holds after its end is written
    )
    only_named: bool = True  # A1: an order changes what it names
    apart: bool = True  # A1: an order for the flow leaves what another one has named


@dataclass(frozen=True)
class Process:
    """A window or an order: ``program`` of steps, where it is, what it holds (a lease of each flow), and has seen."""

    name: str
    program: tuple[str, ...]
    topics: tuple[str, ...] = ()
    at: int = 0
    leases: tuple[int, int] = (-1, -1)
    epoch: int = -1  # of the ids that it has initialised
    seen: tuple[str, ...] = ()

    @property
    def step(self) -> str:
        return self.program[self.at] if self.at < len(self.program) else ""


@dataclass(frozen=True)
class World:
    """The leases' and ids' generations of both flows, who owns what, and the processes."""

    processes: tuple[Process, ...]
    records: tuple[Ownership, ...] = ()
    leases: tuple[int, int] = (0, 0)
    epochs: tuple[int, int] = (0, 0)
    wrong: str = field(default="", compare=False)

    @property
    def owners(self) -> Owners:
        return Owners.of(self.records)


def order(name: str, *changes: Change, topics: tuple[str, ...] = (), back: bool = False, rules: Rules) -> Process:
    """An order's program: the lease and the fence of one flow or both, then each change, committed as the product does."""
    steps = ["lease 0", *(["lease 1"] if back else [])]
    for change in changes:
        steps += [*(["initialise"] if rules.transaction else []), "check 0", f"write {change}"]
        if change is Change.END and Change.GIVE_UP in changes and rules.checks_back:
            steps.append("check 1")
    return Process(name, tuple(steps), topics)


def window(flow: int, rules: Rules) -> Process:
    """A window's program: it writes to what it has seen to be its own. Its slots initialise, then look at the lease."""
    looks = ["lease", "look"] if flow == THERE or rules.looks_under_lease else ["look", "lease"]
    return Process(f"window {flow}", tuple(f"{each} {flow}" for each in (*looks, "begin", "copy")))


def follow(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Yield the states after each process's next step, each with the step's name."""
    for number, process in enumerate(world.processes):
        if not process.step:
            continue
        done, world_then = _step(world, replace(process, at=process.at + 1), process.step, rules)
        processes = (*world.processes[:number], done, *world.processes[number + 1 :])
        yield f"{process.name}: {process.step}", replace(world_then, processes=processes)


def _step(world: World, then: Process, step: str, rules: Rules) -> tuple[Process, World]:
    what, _, rest = step.partition(" ")
    if what == "write":
        return _write(world, then, Change(rest), rules)
    if what == "initialise":
        epochs = (world.epochs[0] + 1, world.epochs[1])
        return replace(then, epoch=epochs[0]), replace(world, epochs=epochs)
    flow = int(rest)
    if what in ("lease", "begin"):  # with the fence
        epochs = _with(world.epochs, flow, world.epochs[flow] + 1)
        world = replace(world, epochs=epochs)
        if what == "begin":
            return (
                replace(then, epoch=epochs[flow]) if world.leases[flow] == then.leases[flow] else _over(then)
            ), world
        leases = _with(world.leases, flow, world.leases[flow] + 1)
        return replace(then, leases=_with(then.leases, flow, leases[flow])), replace(world, leases=leases)
    if what == "check":
        return (then if world.leases[flow] == then.leases[flow] else _over(then)), world
    if what == "look":
        owners, own = world.owners, Owner.SOURCE if flow == THERE else Owner.RETURNING
        return replace(then, seen=tuple(topic for topic in (SHOP, BILL) if owners.owner(topic) is own)), world
    return _copy(world, then, flow)


def _copy(world: World, then: Process, flow: int) -> tuple[Process, World]:
    """Slots write until they are fenced: here once, whenever that is."""
    if world.epochs[flow] != then.epoch:
        return then, world
    for topic in then.seen:
        owner = world.owners.owner(topic)
        if flow == THERE and owner is not Owner.SOURCE:
            return then, replace(world, wrong=f"{topic} is copied there, and its owner is {owner.name}")
        if flow == BACKWARD and owner is Owner.SOURCE:
            return then, replace(world, wrong=f"{topic} is copied back, and its owner is SOURCE: it goes round")
    return then, world


def _write(world: World, then: Process, change: Change, rules: Rules) -> tuple[Process, World]:
    if rules.transaction and world.epochs[THERE] != then.epoch:
        return _over(then), world
    owners = world.owners
    which = _which(owners, then.topics, change, rules)
    if change is Change.FINISH and any(owners.owner(topic) is Owner.RETURNING for topic in which):
        return _over(then), world  # ReturnNotDrained
    scope = OrderScope.TOPIC if then.topics else OrderScope.FLOW
    remote = {topic: f"east.{topic}" for topic in which}
    written = changed(owners, change, which, Signed("", 0, 0, "", ""), scope=scope, remote=remote)
    if not rules.ends_before_unfreezing and change is Change.UNFREEZE:
        opened = [each for topic in which if owners.owner(topic) in BACK and (each := owners.record(topic))]
        written += [replace(each, owner=Owner.SOURCE) for each in opened]
    new = after(owners, written)
    wrong = ""
    for topic in (SHOP, BILL):
        is_named = topic in then.topics if then.topics else not owners.is_apart(topic)
        if not is_named and new.owner(topic) is not owners.owner(topic):
            wrong = f"{topic} is {new.owner(topic).name} by an order that does not name it"
    return then, replace(world, records=tuple(sorted(new.records.values(), key=lambda each: each.topic)), wrong=wrong)


def _which(owners: Owners, topics: tuple[str, ...], change: Change, rules: Rules) -> list[str]:
    if not rules.only_named:
        return [SHOP, BILL]
    if change in (Change.BEGIN, Change.END, Change.GIVE_UP):
        return [each for each in (SHOP, BILL) if (each in topics if topics else not owners.is_apart(each))]
    chosen = named(owners, topics)
    return chosen if rules.apart else sorted({*chosen, *(topics or owners.records)})


def _over(process: Process) -> Process:
    return replace(process, at=len(process.program))


def _with(pair: tuple[int, int], flow: int, value: int) -> tuple[int, int]:
    return (value, pair[1]) if flow == THERE else (pair[0], value)


def explore(first: World, rules: Rules) -> tuple[int, str, tuple[str, ...]]:
    """How many states there are, what is wrong with the first wrong one, and the shortest way to it."""
    came: dict[World, tuple[World | None, str]] = {first: (None, "")}
    layer = [first]
    while layer:
        following = []
        for world in layer:
            for name, there in follow(world, rules):
                if there.wrong:
                    way, at = [name], world
                    while (step := came[at])[0] is not None:
                        way.append(step[1])
                        at = step[0]
                    return len(came), there.wrong, tuple(reversed(way))
                if there not in came:
                    came[there] = (world, name)
                    following.append(there)
        layer = following
    return len(came), "", ()

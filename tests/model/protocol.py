"""The steps of windows, slots and those who end them: every state that may follow a state.

A step reads or writes the shared logs once, as the product does; between any two steps everybody else may act, a process
may stand still for as long as you like, and (while the budget lasts) die, lose an answer or be started a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from model.rules import Rules, holding, seen_leases, truly_holds
from model.world import (
    COMMITTING,
    DECIDED,
    FOREIGN,
    OPEN,
    Attempt,
    Copied,
    Driver,
    Ender,
    MappingRecord,
    Producer,
    Progress,
    Share,
    World,
    abort,
    append,
    begin,
    commit,
    initialise,
    known_progress,
    lease,
    newest_mappings,
    pending,
    write_markers,
)

Next = Iterator[tuple[str, World]]

DEAD, OVER = "dead", "over"
ACCUSED = "a partition is accused of foreign records, and nobody else has written"
HOLDING = frozenset(
    {"grant", "fence", "plan", "start", "check", "write", "commit", "wait", "examine", "verify", "release"}
)
STARTING = frozenset({"check", "write", "commit"})  # a driver's steps with id 0 initialised


@dataclass(frozen=True)
class Scope:
    """What is explored: windows with their slots, source logs (``r`` record, ``a`` aborted), and how often each fault happens.

    ``begins``: the flow begins at this offset, which its first window commits before it copies (``auto.offset.reset=latest``,
    a take-over). ``resets``: windows that only commit where to resume, after foreign records. ``enders``: windows that
    somebody ends from outside. ``terms``: how far the clock goes. ``skew``: each window's clock. ``aggregate``: foreign records
    between the flow's own are no error.
    """

    name: str
    slots: tuple[int, ...]
    source: tuple[str, ...] = ("rr",)
    faults: tuple[tuple[str, int], ...] = ()
    terms: int = 0
    begins: int = 0
    skew: tuple[int, ...] = ()
    enders: tuple[int, ...] = ()
    resets: tuple[int, ...] = ()
    aggregate: bool = False

    def first(self) -> World:
        most = max(self.slots)
        return World(
            clock=0,
            leases=(),
            data=((),) * len(self.source),
            mappings=(),
            progress=(),
            verified=(0,) * len(self.source),
            producers=(Producer(),) * most,
            drivers=(Driver(),) * len(self.slots),
            attempts=(),
            enders=(Ender(),) * len(self.enders),
            budget=tuple(sorted(self.faults)),
        )

    def skew_of(self, window: int) -> int:
        return self.skew[window] if self.skew else 0


def follow(scope: Scope, rules: Rules, world: World) -> Next:
    """Every step that can be taken, with its name."""
    yield from _surroundings(scope, rules, world)
    for window, driver in enumerate(world.drivers):
        if driver.step == "idle" and window and world.drivers[window - 1].step == "idle":
            break  # windows that have not begun are alike
        if driver.step not in (DEAD, OVER):
            for name, after in _drive(scope, rules, world, window, driver):
                yield f"window {window} {name}", after
            yield from _befall(rules, world, window, driver)
    for attempt in dict.fromkeys(world.attempts):
        who = f"slot {attempt.window}.{attempt.slot}"
        for name, after in _attempt(scope, rules, world, attempt):
            yield f"{who} {name}", after
        yield from _kill(scope, rules, world, who, attempt)
    for number, ender in enumerate(world.enders):
        window = scope.enders[number]
        for name, (after, following) in _end(scope, rules, world, window, ender):
            enders = (*world.enders[:number], following, *world.enders[number + 1 :])
            yield f"who ends window {window} {name}", after._replace(enders=enders)


def _surroundings(scope: Scope, rules: Rules, world: World) -> Next:
    if world.clock < scope.terms:
        yield "a lease passes", world._replace(clock=world.clock + 1)
    for number, producer in enumerate(world.producers):
        if producer.state == COMMITTING:
            yield f"the markers of id {number} are written", write_markers(world, number)
        elif producer.state == OPEN and world.left("time_out"):
            timed_out = _fenced(rules, abort(world, number), number)
            yield f"the transaction of id {number} times out", timed_out.spend("time_out")
    if world.left("foreign") and world.data[0]:
        foreign = (*world.data[0], Copied(FOREIGN, DECIDED))
        yield "somebody else writes", world._replace(data=(foreign, *world.data[1:])).spend("foreign")
    if world.left("delete_progress") and any(found.transaction == DECIDED for found in world.progress):
        rest = tuple(found for found in world.progress if found.transaction != DECIDED)
        yield "mm2-offsets is deleted", world._replace(progress=rest).spend("delete_progress")


def _befall(rules: Rules, world: World, window: int, driver: Driver) -> Next:
    if driver.step == "idle":
        return
    if world.left("kill"):
        yield f"window {window} is killed", world.driver(window, **_gone(DEAD)).spend("kill")
    if driver.step in HOLDING - {"release"} and world.left("interrupt"):
        yield f"window {window} is interrupted", _ends(world, window).spend("interrupt")
    if driver.step in HOLDING - {"grant"}:
        last = next(found for found in reversed(world.leases) if found.window == window)
        if last.time < world.clock or last.event == "released":
            yield (
                f"window {window} renews its lease",
                append(world, window, "renewed", driver.ids, rules.renews_at_once),
            )


def _kill(scope: Scope, rules: Rules, world: World, who: str, attempt: Attempt) -> Next:
    expected = attempt.slot in world.drivers[attempt.window].waiting
    again = _anew(rules, attempt.window, attempt.slot, attempt.plan)
    if world.left("kill_slot"):  # Spark starts it again while its job runs
        rest = world.without(attempt)
        yield f"{who} is killed", (rest.put(again) if expected else rest).spend("kill_slot")
    if world.left("double") and expected and again != attempt:
        yield f"{who} is started a second time", world.put(again).spend("double")


def _anew(rules: Rules, window: int, slot: int, plan: tuple[Share, ...]) -> Attempt:
    """An attempt from the beginning: it knows what was planned."""
    return Attempt(window, slot, "initialise" if rules.initialises_first else "look", plan)


def _slot_of(scope: Scope, partition: int, window: int) -> int:
    return partition % scope.slots[window]


def _ends(world: World, window: int) -> World:
    """The driver has only its lease to release."""
    return world.driver(window, step="release", at=0, shares=(), waiting=())


def _gone(step: str) -> dict[str, object]:
    """What is left of a driver that is over: nothing that could tell states apart."""
    return Driver(step)._asdict()


def _drive(scope: Scope, rules: Rules, world: World, window: int, driver: Driver) -> Next:
    step = driver.step
    if step == "idle":
        yield from _lease(scope, rules, world, window)
    elif step == "grant":
        yield "renews its lease, and deletes those before", _grant(rules, world, window, driver)
    elif step == "refused":
        gone = world.driver(window, **_gone(OVER))
        yield "deletes its lease", append(gone, window, "deleted")
    elif step == "fence":
        yield from _fence(scope, rules, world, window, driver)
    elif step == "plan":
        if not pending(world):
            known = newest_mappings(world), known_progress(world)
            yield _plan(scope, rules, world, window, driver, *known)
            if not rules.ledger_is_whole and world.left("rebuild"):
                yield _plan(
                    scope=scope,
                    rules=rules,
                    world=world.spend("rebuild"),
                    window=window,
                    driver=driver,
                    mappings={},
                    progress={},
                )
    elif step in ("start", "check", "write", "commit"):
        yield from _commit_starts(scope, rules, world, window, driver)
    elif step == "examine":
        if not pending(world):
            yield "reads back", world.driver(window, step="verify", shares=_found(world))
    elif step == "verify":
        verified = list(world.verified)
        for share in driver.shares:
            verified[share.partition] = share.position
        yield "verifies", world.driver(window, step="release", shares=())._replace(verified=tuple(verified))
    elif step == "release":
        released = append(world, window, "released", driver.ids, rules.renews_at_once)
        yield "releases its lease", released.driver(window, **_gone(OVER))


def _lease(scope: Scope, rules: Rules, world: World, window: int) -> Next:
    """Append the lease, and read those before it: nothing that is appended later changes what is read."""
    own = scope.slots[window]
    leased = lease(world, window, own, scope.skew_of(window))
    for scanned in {0, len(world.leases)}:
        entries = seen_leases(world.leases, scanned, len(world.leases))
        held = holding(rules.holder, entries, True)
        if rules.courtesy and held is not None and held.alive(world.clock):
            yield f"takes the flow's lease, finds window {held.window} at work", leased.driver(window, step="refused")
            continue
        if rules.courtesy and (other := truly_holds(world.leases, world.clock)) is not None:
            leased = leased._replace(wrong=f"B: window {window} is granted the lease that window {other} holds")
        ids = max([own, *(record.slots for _, record in entries)]) if rules.fences_every_id else own
        others = tuple(sorted({record.window for _, record in entries}))
        yield "takes the flow's lease, and is granted it", leased.driver(window, step="grant", ids=ids, others=others)


def _grant(rules: Rules, world: World, window: int, driver: Driver) -> World:
    """Renew the lease at once, so that all see that it was granted; delete those of windows that are over."""
    if rules.renews_at_once or driver.ids > next(found.slots for found in world.leases if found.window == window):
        world = append(world, window, "renewed", driver.ids, rules.renews_at_once)
    for other in driver.others:
        world = append(world, other, "deleted")
    return world.driver(window, step="fence", others=())


def _fence(scope: Scope, rules: Rules, world: World, window: int, driver: Driver) -> Next:
    if not rules.fences:
        yield "fences nothing", world.driver(window, step="plan")
    elif (after := initialise(world, driver.at)) is not None:
        after = _fenced(rules, after, driver.at)
        last = driver.at + 1 == driver.ids
        yield (
            f"fences id {driver.at}",
            after.driver(window, step="plan" if last else "fence", at=0 if last else driver.at + 1),
        )


def _fenced(rules: Rules, world: World, number: int) -> World:
    """Whoever had the id begins anew (a driver ends): nothing that it tried before would have been taken."""
    for attempt in world.attempts:
        if attempt.slot == number and attempt.step in (
            "write",
            "commit",
            "look" if rules.initialises_first else "write",
        ):
            world = world.without(attempt).put(_anew(rules, attempt.window, attempt.slot, attempt.plan))
    for window, driver in enumerate(world.drivers):
        if number == 0 and driver.step in STARTING:
            world = _ends(world, window)
    return world


def _plan(
    scope: Scope,
    rules: Rules,
    world: World,
    window: int,
    driver: Driver,
    mappings: Mapping[tuple[int, int], MappingRecord],
    progress: Mapping[int, int],
) -> tuple[str, World]:
    """``mappings`` and ``progress``: as the ledger has them."""
    if scope.begins and not mappings:
        starts = tuple(Share(partition, scope.begins, 0) for partition in range(len(scope.source)))
        return "finds a flow that has not begun", world.driver(window, step="start", shares=starts)
    if window in scope.resets:
        resets = tuple(_reset(world, partition) for partition in range(len(scope.source)))
        return "decides where to resume", world.driver(window, step="start", shares=resets)
    shares = _positions(scope, rules, mappings, progress)
    if not shares:
        return "finds nothing new", world.driver(window, step="examine")
    slots = sorted({_slot_of(scope, share.partition, window) for share in shares})
    world = world.driver(window, step="wait", waiting=tuple(slots))
    for slot in slots:
        own = tuple(share for share in shares if _slot_of(scope, share.partition, window) == slot)
        world = world.put(_anew(rules, window, slot, own))
    return "plans and starts its slots", world


def _positions(
    scope: Scope, rules: Rules, mappings: Mapping[tuple[int, int], MappingRecord], progress: Mapping[int, int]
) -> list[Share]:
    """The partitions with something new, each from its position on."""
    shares = []
    for partition, log in enumerate(scope.source):
        newest = _last(mappings.values(), partition)
        position = newest.end if newest is not None else progress.get(partition, -1) + 1
        if not rules.positions_from_mappings:
            position = progress.get(partition, -1) + 1
        if position < len(log):
            shares.append(Share(partition, position, 0 if newest is None else newest.last))
    return shares


def _commit_starts(scope: Scope, rules: Rules, world: World, window: int, driver: Driver) -> Next:
    step = driver.step
    if step == "start":
        if (after := initialise(world, 0)) is not None:
            following = "check" if rules.driver_checks_lease else "write"
            yield "initialises id 0", _fenced(rules, after, 0).driver(window, step=following)
    elif step == "check":
        if not pending(world):
            mine = _holds(rules, world, window)
            yield "looks at its lease", world.driver(window, step="write") if mine else _ends(world, window)
    elif step == "write":
        mappings = tuple(
            MappingRecord(
                partition=share.partition,
                start=share.position,
                end=share.position,
                first=share.target_end,
                last=share.target_end,
                leases=len(world.leases),
                transaction=0,
            )
            for share in driver.shares
        )
        progress = tuple(Progress(share.partition, share.position - 1, 0) for share in driver.shares)
        after = world._replace(mappings=world.mappings + mappings, progress=world.progress + progress)
        yield "writes where to resume", begin(after, 0, window).driver(window, step="commit", shares=())
    else:
        following = "release" if window in scope.resets else "plan"
        yield "commits where to resume", commit(world, 0).driver(window, step=following)


def _reset(world: World, partition: int) -> Share:
    """Somebody accepts what others have written: the flow resumes after it."""
    newest = _last(newest_mappings(world).values(), partition)
    return Share(partition, 0 if newest is None else newest.end, len(world.data[partition]))


def _last(mappings: Iterable[MappingRecord], partition: int) -> MappingRecord | None:
    """The newest mapping record: the one that reaches farthest."""
    return max((found for found in mappings if found.partition == partition), key=lambda found: found.end, default=None)


def _holds(rules: Rules, world: World, window: int) -> bool:
    """As an attempt looks: at the leases from its window's own on."""
    entries = tuple((place, world.leases[place]) for place in range(_own_lease(world, window), len(world.leases)))
    held = holding(rules.holder, entries, False)
    return held is not None and held.window == window and not held.released


def _own_lease(world: World, window: int) -> int:
    return next(place for place, found in enumerate(world.leases) if found.window == window)


def _attempt(scope: Scope, rules: Rules, world: World, attempt: Attempt) -> Next:
    step, number = attempt.step, attempt.slot
    if step == "initialise":
        if (after := initialise(world, number)) is not None:
            after = _fenced(rules, after, number)
            yield f"initialises id {number}", after.step(attempt, step="look" if rules.initialises_first else "write")
            if world.left("lose_answer"):
                yield f"initialises id {number}, the answer is lost", after.spend("lose_answer")
    elif step == "look":
        if not pending(world):
            yield _look(scope, rules, world, attempt)
    elif step == "write":
        if (after := _write(scope, rules, world, attempt)) is not None:
            yield after
    else:
        yield from _commit(scope, rules, world, attempt)


def _look(scope: Scope, rules: Rules, world: World, attempt: Attempt) -> tuple[str, World]:
    """The lease, and what is committed, as of one end of the mapping topic."""
    if rules.slot_checks_lease and not _holds(rules, world, attempt.window):
        return "finds that its lease is over", _answered(world.without(attempt), attempt)
    own = _own_lease(world, attempt.window)
    mappings = [found for found in newest_mappings(world).values() if rules.continues and found.leases > own]
    shares = []
    for share in attempt.plan:
        newest = _last(mappings, share.partition)
        if newest is not None and newest.end > share.position:
            share = Share(share.partition, newest.end, newest.last)
        if share.position < len(scope.source[share.partition]):
            shares.append(share)
    if not shares:
        return "finds everything done", _answered(world.without(attempt), attempt)
    following = "write" if rules.initialises_first else "initialise"
    return "finds its lease alive", world.step(attempt, step=following, shares=tuple(shares))


def _answered(world: World, attempt: Attempt) -> World:
    driver = world.drivers[attempt.window]
    if attempt.slot not in driver.waiting:
        return world
    waiting = tuple(slot for slot in driver.waiting if slot != attempt.slot)
    if waiting:
        return world.driver(attempt.window, waiting=waiting)
    return world.driver(attempt.window, waiting=(), step="examine")


def _write(scope: Scope, rules: Rules, world: World, attempt: Attempt) -> tuple[str, World] | None:
    """The next record of every partition, its mapping and its progress. None: other transactions must end first."""
    number, data = attempt.slot, list(world.data)
    if world.producers[number].state == COMMITTING:
        return None
    mappings, progress, shares = world.mappings, world.progress, []
    for share in attempt.shares:
        partition, position, end = share
        if scope.source[partition][position] == "r":
            log = data[partition]
            if any(record.transaction != DECIDED for record in log):
                return None  # what lies between is read committed, to the base offset of what was written
            if not scope.aggregate and any(record.source is not None for record in log[end:]):
                if any(record.source == FOREIGN for record in log[end:]):
                    return "finds foreign records", _answered(world.without(attempt), attempt)
                return "finds foreign records", world._replace(wrong=ACCUSED)
            data[partition] = (*log, Copied(position, number))
            mapping = MappingRecord(
                partition=partition,
                start=position,
                end=position + 1,
                first=len(log),
                last=len(log) + 1,
                leases=len(world.leases),
                transaction=number,
            )
        else:
            carried = (
                end
                if rules.carries_target_end
                else next(each.target_end for each in attempt.plan if each[0] == partition)
            )
            mapping = MappingRecord(
                partition=partition,
                start=position,
                end=position + 1,
                first=carried,
                last=carried,
                leases=len(world.leases),
                transaction=number,
            )
        if not rules.one_transaction:
            mapping = mapping._replace(transaction=DECIDED)
        mappings = (*mappings, mapping)
        progress = (*progress, Progress(partition, position, number))
        shares.append(Share(partition, position + 1, max(end, mapping.last)))
    after = world._replace(data=tuple(data), mappings=mappings, progress=progress)
    after = begin(after, number, attempt.window).step(attempt, step="commit", shares=tuple(shares))
    return "writes " + ", ".join(f"{share.partition}:{share.position}" for share in attempt.shares), after


def _commit(scope: Scope, rules: Rules, world: World, attempt: Attempt) -> Next:
    number = attempt.slot
    left = tuple(share for share in attempt.shares if share.position < len(scope.source[share.partition]))
    done = commit(world, number)
    if left:
        yield "commits", done.step(attempt, step="initialise" if rules.initialises_first else "look", shares=left)
        if world.left("cut"):
            yield "commits, and its time is over", _answered(done.without(attempt), attempt).spend("cut")
    else:
        yield "commits, and is done", _answered(done.without(attempt), attempt)
    if world.left("lose_answer"):
        again = _anew(rules, attempt.window, attempt.slot, attempt.plan)
        yield "commits, the answer is lost", done.without(attempt).put(again).spend("lose_answer")
        yield "commits, the request is lost", world.without(attempt).put(again).spend("lose_answer")


def _found(world: World) -> tuple[Share, ...]:
    """What can be verified: of every partition the end of the mappings that lie on the target as they say."""
    found = []
    for partition, log in enumerate(world.data):
        mappings = [each for each in newest_mappings(world).values() if each.partition == partition]
        good = 0
        for mapping in sorted(mappings, key=lambda each: each.start):
            held = [record.source for record in log[mapping.first : mapping.last] if record.transaction == DECIDED]
            if held != list(range(mapping.start, mapping.end))[: mapping.last - mapping.first]:
                break
            good = mapping.end
        if good:
            found.append(Share(partition, good, 0))
    return tuple(found)


def _end(
    scope: Scope, rules: Rules, world: World, window: int, ender: Ender
) -> Iterator[tuple[str, tuple[World, Ender]]]:
    """``end_window``: release the lease, then fence every id, so that what is fenced can't begin anew under the lease."""
    step = ender.step
    if step == "idle":
        if world.drivers[window].step in HOLDING | {DEAD, OVER} and any(
            found.window == window for found in world.leases
        ):
            yield _looks_whom_to_end(rules, world, window)
    elif step == "release":
        released = append(world, window, "released", by_broker=rules.renews_at_once)
        yield "releases its lease", (released, Ender("fence" if rules.release_then_fence else OVER))
    elif step == "fence" and (after := initialise(world, ender.at)) is not None:
        last = ender.at + 1 == max(scope.slots)
        following = Ender(OVER if rules.release_then_fence else "release") if last else Ender("fence", ender.at + 1)
        yield f"fences id {ender.at}", (_fenced(rules, after, ender.at), following)


def _looks_whom_to_end(rules: Rules, world: World, window: int) -> tuple[str, tuple[World, Ender]]:
    held = holding(rules.holder, seen_leases(world.leases, 0, len(world.leases)), True)
    if held is None or held.window != window or held.released:
        if held is not None and held.window != window:
            return "finds another window at work", (world, Ender(DEAD))
        return "finds its lease released", (world, Ender("fence" if rules.fences_released else OVER))
    return "finds its lease", (world, Ender("release" if rules.release_then_fence else "fence"))

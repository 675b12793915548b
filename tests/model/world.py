"""The state of the model: Kafka's transactional log as far as the protocol needs it, and who is at which step.

Everything is a tuple of small values, so that states can be compared. A transaction is as in Kafka: InitProducerId fences
whoever had the id and aborts what is open, EndTxn answers before its markers are written, and until they are nobody reads
what was committed. Aborted records keep their offsets; markers have none here.
"""

from __future__ import annotations

from typing import NamedTuple

FOREIGN = 99  # in place of a source offset: somebody else's record
DECIDED = -1  # in place of a transactional id: the record is committed, or was never in a transaction
FREE, OPEN, COMMITTING = "free", "open", "committing"  # what the transaction of an id is in


class LeaseRecord(NamedTuple):
    """A lease record; its offset is its place in the log. ``time`` is the broker's; ``said``, when its window took the lease: by
    the window's clock in the lease itself, by the broker's in what follows. ``slots``: the most that any lease had."""

    window: int
    event: str  # taken, renewed, go, released, deleted (refused, or over)
    time: int
    said: int
    slots: int


class Copied(NamedTuple):
    """A record on the target. ``source``: its offset on the source, None where its transaction was aborted."""

    source: int | None
    transaction: int


class MappingRecord(NamedTuple):
    """A mapping record: source ``[start, end)`` lies at target ``[first, last)``. ``leases``: how many lie before it."""

    partition: int
    start: int
    end: int
    first: int
    last: int
    leases: int
    transaction: int


class Progress(NamedTuple):
    """A record of ``mm2-offsets``: the last accounted source offset."""

    partition: int
    offset: int
    transaction: int


class Producer(NamedTuple):
    """A transactional id: the state of its transaction, and the window that began it."""

    state: str = FREE
    window: int = 0


class Share(NamedTuple):
    """A partition's part of a slot: the next source offset, and where the flow's last record ends on the target."""

    partition: int
    position: int
    target_end: int


class Driver(NamedTuple):
    """A window's driver: its next step, and what it knows."""

    step: str = "idle"
    ids: int = 0  # to fence: as many as any window had slots
    at: int = 0  # the id that is fenced next
    shares: tuple[Share, ...] = ()  # what it will write: starts, or what is verified
    waiting: tuple[int, ...] = ()  # slots that have not answered
    others: tuple[int, ...] = ()  # windows whose leases it will delete


class Attempt(NamedTuple):
    """An attempt of a slot: a process of its own, which its driver's death does not end. ``plan``: what it was told."""

    window: int
    slot: int
    step: str
    plan: tuple[Share, ...]
    shares: tuple[Share, ...] = ()


class Ender(NamedTuple):
    """Somebody who ends a window from outside (pause, kill): not begun, then the steps of ``end_window``."""

    step: str = "idle"
    at: int = 0


class World(NamedTuple):
    """One state. ``budget``: how often each fault may still happen; ``wrong``: a step that must not be taken was."""

    clock: int
    leases: tuple[LeaseRecord, ...]
    data: tuple[tuple[Copied, ...], ...]
    mappings: tuple[MappingRecord, ...]
    progress: tuple[Progress, ...]
    verified: tuple[int, ...]
    producers: tuple[Producer, ...]
    drivers: tuple[Driver, ...]
    attempts: tuple[Attempt, ...]
    enders: tuple[Ender, ...]
    budget: tuple[tuple[str, int], ...]
    wrong: str = ""

    def left(self, fault: str) -> int:
        return next((count for name, count in self.budget if name == fault), 0)

    def spend(self, fault: str) -> World:
        return self._replace(budget=tuple((name, count - (name == fault)) for name, count in self.budget))

    def driver(self, window: int, **changes: object) -> World:
        drivers = list(self.drivers)
        drivers[window] = drivers[window]._replace(**changes)
        return self._replace(drivers=tuple(drivers))

    def without(self, attempt: Attempt) -> World:
        """One attempt less (two that are equal can't be told apart)."""
        attempts = list(self.attempts)
        attempts.remove(attempt)
        return self._replace(attempts=tuple(attempts))

    def put(self, attempt: Attempt) -> World:
        return self._replace(attempts=tuple(sorted((*self.attempts, attempt))))

    def step(self, attempt: Attempt, **changes: object) -> World:
        return self.without(attempt).put(attempt._replace(**changes))


def lease(world: World, window: int, slots: int, skew: int) -> World:
    """Append a lease, outside every transaction."""
    return world._replace(leases=(*world.leases, LeaseRecord(window, "taken", world.clock, world.clock + skew, slots)))


def append(world: World, window: int, event: str, slots: int | None = None, by_broker: bool = True) -> World:
    """Append what becomes of a window's lease."""
    own = next(record for record in world.leases if record.window == window)
    record = LeaseRecord(
        window, event, world.clock, own.time if by_broker else own.said, own.slots if slots is None else slots
    )
    return world._replace(leases=(*world.leases, record))


def initialise(world: World, number: int) -> World | None:
    """InitProducerId: abort what is open; None: the last transaction's markers are not written yet."""
    producer = world.producers[number]
    if producer.state == COMMITTING:
        return None
    return abort(world, number) if producer.state == OPEN else world


def begin(world: World, number: int, window: int) -> World:
    """The first write of a transaction."""
    return _producer(world, number, Producer(OPEN, window))


def commit(world: World, number: int) -> World:
    """EndTxn: decided, and not to be read yet."""
    return _producer(world, number, Producer(COMMITTING))


def write_markers(world: World, number: int) -> World:
    """The end of a transaction that was committed: now everybody reads it."""

    def decided(found: Copied | MappingRecord | Progress) -> Copied | MappingRecord | Progress:
        return found._replace(transaction=DECIDED) if found.transaction == number else found

    world = world._replace(
        data=tuple(tuple(decided(record) for record in log) for log in world.data),  # type: ignore[misc]
        mappings=tuple(decided(record) for record in world.mappings),  # type: ignore[misc]
        progress=_newest(tuple(decided(record) for record in world.progress)),  # type: ignore[arg-type]
    )
    return _producer(world, number, Producer())


def abort(world: World, number: int) -> World:
    """Its records are void."""
    logs = []
    for log in world.data:
        kept = [
            record._replace(source=None, transaction=DECIDED) if record.transaction == number else record
            for record in log
        ]
        while kept and kept[-1].source is None:  # what lies at the end of the log makes no difference to anybody
            kept.pop()
        logs.append(tuple(kept))
    world = world._replace(
        data=tuple(logs),
        mappings=tuple(record for record in world.mappings if record.transaction != number),
        progress=tuple(record for record in world.progress if record.transaction != number),
    )
    return _producer(world, number, Producer())


def pending(world: World) -> bool:
    """Whether a transaction is open in the internal topics: who reads them committed waits for its end."""
    return any(record.transaction != DECIDED for record in (*world.mappings, *world.progress))


def committed(log: tuple[Copied, ...]) -> list[int]:
    """The source offsets of the records that consumers with read_committed see, in their order."""
    return [record.source for record in log if record.source not in (None, FOREIGN) and record.transaction == DECIDED]  # type: ignore[misc]


def newest_mappings(world: World) -> dict[tuple[int, int], MappingRecord]:
    """What compaction keeps: of every (partition, source start) the last record, committed ones only."""
    return {(found.partition, found.start): found for found in world.mappings if found.transaction == DECIDED}


def known_progress(world: World) -> dict[int, int]:
    return {found.partition: found.offset for found in world.progress if found.transaction == DECIDED}


def _newest(progress: tuple[Progress, ...]) -> tuple[Progress, ...]:
    """Without the decided records that a later decided one replaces."""
    last = {record.partition: place for place, record in enumerate(progress) if record.transaction == DECIDED}
    return tuple(
        record
        for place, record in enumerate(progress)
        if record.transaction != DECIDED or last[record.partition] == place
    )


def _producer(world: World, number: int, producer: Producer) -> World:
    producers = list(world.producers)
    producers[number] = producer
    return world._replace(producers=tuple(producers))

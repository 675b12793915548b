"""The applications of a story, and what they know: what was acknowledged, and what each group has read, in order.

They write and read by confluent-kafka, straight to the clusters; commands and windows reach them through the proxies.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from airmirror.clusters.admin.appender import Appender
from airmirror.flows.positions import list_positions
from airmirror.flows.prepare import Opened
from airmirror.flows.verification import compare_all
from airmirror.slot.errors import SlotFenced
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.names import select
from airmirror.topics.sync import apply, look
from airmirror.windows.errors import FlowBusy, FlowFrozen
from airmirror.wire.mirrormaker import source_offset_key, source_offset_record
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Proxy
from chaos.stories import MM2_PROGRESS, MOVE, ProcedurePlan
from support.groups import commit, committed
from support.returns import FORWARD, Both, forward_and_reverse, properties
from support.sides import Sides
from support.topics import Record, create_topic, end_offsets, produce, read_all, topics_of

Side = Literal["east", "west"]
Positions = dict[tuple[str, Side], dict[tuple[str, int], int]]  # of groups, on each side
Partition = tuple[str, int]  # of the source's topic, wherever its records are
CONNECTOR = "MirrorSourceConnector"
MOST_WINDOWS = 20


@dataclass
class Estate:
    """Two clusters, a topic that the story moves and one that stays where its story does not name it, each with its group.

    ``lost``: what a disaster has left on the source alone; ``unseen``: what groups had read by then and no window has seen.
    """

    plan: ProcedurePlan
    sides: Sides
    proxies: Mapping[Side, Proxy]
    directory: Path
    acknowledged: dict[Partition, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    consumed: dict[Partition, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    lost: set[bytes] = field(default_factory=set)
    unseen: set[bytes] = field(default_factory=set)
    _seen: dict[Partition, int] = field(default_factory=dict)  # how many records a group had read
    _numbers: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(f"applications {self.plan.seed}")
        mark = uuid.uuid4().hex[:8]
        self.moves = create_topic(self.sides.east, f"orders-{mark}", 2)
        self.stays = create_topic(self.sides.east, f"bills-{mark}", 1)
        self.groups = {self.moves: f"shop-{mark}", self.stays: f"bill-{mark}"}
        moved = {self.moves} if self.plan.name.startswith("migration") else {self.moves, self.stays}
        self.moved = moved
        self.writers: dict[str, Side] = dict.fromkeys(self.groups, "east")
        self.readers: dict[str, Side] = dict.fromkeys(self.groups, "east")
        settings = {
            f"{FORWARD}.move.{MOVE}.topics": self.moves,
            f"{FORWARD}.move.quiet.ms": "0",
            f"{FORWARD}.move.soak.ms": "0",
            "producer.transaction.timeout.ms": "4000",
        }
        if "take-over" in self.plan.name:
            create_topic(self.sides.west, MM2_PROGRESS, 3)
            settings[f"{FORWARD}.takeover.offsets.topics"] = MM2_PROGRESS
        topics, groups = ", ".join(self.groups), ", ".join(self.groups.values())
        servers = self.proxies["east"].bootstrap, self.proxies["west"].bootstrap
        self.config = self.directory / "mirror.properties"
        lines = properties(servers, topics, groups, self.plan.policy) | settings
        self.config.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
        settings |= {f"{FORWARD}.topics": topics, "groups": groups}
        self.both: Both = forward_and_reverse(
            self.sides.east,
            self.sides.west,
            self.directory,
            policy=self.plan.policy,
            settings=settings,
            topic=self.moves,
        )
        self.shared = f"sqlite:///{self.directory}/driver.db"
        for topic, group in self.groups.items() if self.plan.name.startswith("migration") else ():
            commit(self.sides.east, group, {(topic, 0): 0})  # an undo leaves alone who never was on the source
        for group in self.groups.values():  # which stands somewhere on the target, as one that was there before
            if self.chance.random() < 0.3 and "take-over" not in self.plan.name:
                self.prepared()
                commit(self.sides.west, group, {(self.name(self._topic_of(group), "west"), 0): 0})

    @cached_property
    def remote(self) -> dict[str, str]:
        """The topics with their names on the target."""
        return select(self.both.forward.flow, list(self.groups))

    def _topic_of(self, group: str) -> str:
        return next(topic for topic, its in self.groups.items() if its == group)

    def prepared(self) -> None:
        """Remote topics and internal ones are there."""
        apply(self.both.forward.flow, look(self.both.forward.flow))
        ensure_internal_topics(self.both.forward.flow)

    def ledger(self, *, elsewhere: bool = False) -> str:
        """Where a command keeps its ledger; ``elsewhere``: one that has seen nothing, whatever the plan says."""
        own = self.plan.elsewhere or elsewhere
        return f"sqlite:///{self.directory}/{uuid.uuid4().hex}.db" if own else self.shared

    def broker(self, side: Side) -> Broker:
        return self.sides.east if side == "east" else self.sides.west

    def name(self, topic: str, side: Side) -> str:
        return topic if side == "east" else self.remote[topic]

    def log(self, topic: str, side: Side) -> dict[int, list[Record]]:
        return read_all(self.broker(side), self.name(topic, side))

    def write(self) -> None:
        """Producers write some records to most partitions: plain ones, and in transactions, of which some are aborted."""
        for topic, side in self.writers.items():
            for partition in range(2 if topic == self.moves else 1):
                if self.chance.random() < 0.15:
                    continue
                made = [
                    Record(b"v%d" % number, b"k%d" % (number % 5)) for number in self._new(self.chance.randint(1, 8))
                ]
                how = self.chance.choice([None, None, "commit", "abort"])
                produce(self.broker(side), self.name(topic, side), made, partition=partition, transactional=how)  # type: ignore[arg-type]
                if how != "abort":
                    self.acknowledged[topic, partition] += [each.value or b"" for each in made]

    def _new(self, count: int) -> range:
        self._numbers += count
        return range(self._numbers - count, self._numbers)

    def read(self, *, all_: bool = False) -> None:
        """Consumers read from where their groups stand, some or all of what is there, commit, and leave."""
        for topic, group in self.groups.items():
            side = self.readers[topic]
            cluster, name = self.broker(side), self.name(topic, side)
            stands = committed(cluster, group)
            ends, done = end_offsets(cluster, name), dict[Partition, int]()
            for partition, records in self.log(topic, side).items():
                at = stands.get((name, partition), 0)
                new = [each for each in records if each.offset >= at]
                most = len(new) if all_ else self.chance.choice([0, len(new) // 2, len(new)])
                self.consumed[topic, partition] += [each.value or b"" for each in new[:most]]
                if most:  # one that has read all stands after what follows the last record, or before it
                    is_end = most == len(new) and self.chance.random() < 0.5
                    done[name, partition] = ends[partition] if is_end else new[most - 1].offset + 1
            if done:
                commit(cluster, group, done)

    def window(self) -> int | None:
        """One window of each flow; how many records they copied, None: another one, or a command, has a lease."""
        copied = [self._window(each) for each in (self.both.forward, self.both.reverse)]
        return None if None in copied else sum(filter(None, copied))

    def _window(self, opened: Opened) -> int | None:
        try:
            result = self.both.window(opened)
        except FlowFrozen:
            return 0
        except (FlowBusy, SlotFenced):
            return None
        errors = [row.error for row in result.rows if row.error is not None]
        assert not [each for each in errors if not each.transient], list(map(str, errors))
        if opened is self.both.forward:
            self._seen = {place: len(values) for place, values in self.consumed.items()}
        return result.copied

    def copy(self) -> None:
        """MirrorMaker 2 continues after its progress, copies some records, and writes all its progress, or a part of it."""
        self.prepared()
        progress = dict(self._progress())
        for topic, remote in self.remote.items():
            for partition, records in self.log(topic, "east").items():
                left = [each for each in records if each.offset > progress.get((topic, partition), -1)]
                its = left[: self.chance.randint(0, len(left))]
                produce(self.sides.west, remote, its, partition=partition)
                told = its[: self.chance.choice([len(its), len(its) // 2])]
                if told:
                    number, record = source_offset_record(
                        "east", topic, partition, told[-1].offset, partitions=3, connector=CONNECTOR
                    )
                    with Appender(self.both.forward.flow.target, MM2_PROGRESS, number) as appender:
                        appender.append([record])

    def _progress(self) -> Iterator[tuple[Partition, int]]:
        keys = {
            source_offset_key("east", topic, partition, CONNECTOR): (topic, partition)
            for topic in self.groups
            for partition in range(2)
        }
        for records in read_all(self.sides.west, MM2_PROGRESS).values():
            for each in records:
                if each.key in keys and each.value:
                    yield keys[each.key], int(json.loads(each.value)["offset"])

    def move(self, side: Side, *, consumers: bool = True, producers: bool = True) -> None:
        """Applications start on a cluster."""
        for topic in self.moved:
            if consumers:
                self.readers[topic] = side
            if producers:
                self.writers[topic] = side

    def count_unseen(self) -> None:
        """What groups have read that no window has seen, when the source is about to be lost."""
        for place, values in self.consumed.items():
            self.unseen.update(values[self._seen.get(place, 0) :])

    def count_lost(self) -> None:
        """What the source has, and the target has not, when the source is lost."""
        for topic in self.moved:
            there = {each.value for records in self.log(topic, "west").values() for each in records}
            self.lost |= {value for value in self.known(topic) if value not in there}

    def known(self, topic: str) -> list[bytes]:
        """What was acknowledged of a topic."""
        return [value for (name, _), values in self.acknowledged.items() if name == topic for value in values]

    def positions(self) -> Positions:
        """Where groups stand on both sides."""
        sides: tuple[Side, Side] = ("east", "west")
        return {(group, side): committed(self.broker(side), group) for group in self.groups.values() for side in sides}

    def finish(self) -> int:
        """Applications write and read once more, windows run until nothing is left, and everything is compared."""
        self.write()
        for _ in range(MOST_WINDOWS):
            if (copied := self.window()) == 0:
                break
            if copied is None:  # who was killed has his lease until it runs out
                time.sleep(1.0)
        else:
            raise AssertionError(f"after {MOST_WINDOWS} windows records are still copied")
        if "take-over" in self.plan.name:
            self._check_positions()
        self.read(all_=True)
        for topic in self.groups:
            self._check(topic)
        if self.plan.story.ends == "both":
            rows = [row for row in compare_all(self.both.forward, []) if row.error is not None]
            assert not rows, [str(row.error) for row in rows]
        return sum(map(len, self.acknowledged.values()))

    def _check_positions(self) -> None:
        """Where groups would resume on the target, they skip nothing, of MirrorMaker 2's copies too; exactly, they read nothing
        again."""
        rows = list_positions(self.both.forward, list(self.groups.values()))
        stands = {group: committed(self.sides.east, group) for group in self.groups.values()}
        assert {(row.group, row.topic, row.partition) for row in rows} == {
            (group, *key) for group, offsets in stands.items() for key in offsets
        }
        for row in rows:
            place = row.topic, row.partition
            assert row.translation is not None, f"{row.group} in {place} would not resume on west: {row.reason}"
            log = self.log(row.topic, "west")[row.partition]
            there = [each.value for each in log if each.offset >= row.translation]
            left = self.acknowledged[place][len(self.consumed[place]) :]
            found = there if row.exact and not row.again else there[-len(left) or len(there) :]
            assert found == left, f"{row.group} in {place} would read {there} on west, and has not read {left}"

    def _check(self, topic: str) -> None:
        """Every record is where the story says, once, in order; and each group has read each of them, in order."""
        both = self.plan.story.ends == "both" or topic not in self.moved
        sides: tuple[Side, ...] = ("east", "west") if both else ("west",)
        rescued = self._rescued(topic) if self.lost and both else []
        assert len(rescued) == len(set(rescued)) and self.lost.issuperset(rescued), f"rescued of {topic}: {rescued}"
        for side in sides:
            away = set() if side == "east" else set(rescued) if both else self.lost
            for partition, found in self._values(topic, side).items():
                wanted = [each for each in self.acknowledged[topic, partition] if each not in away]
                assert found == wanted, f"{topic}-{partition} on {side}: {_difference(wanted, found)}"
        for (name, partition), wanted in self.acknowledged.items():
            if name == topic:
                self._check_read(topic, partition, wanted)

    def _check_read(self, topic: str, partition: int, wanted: list[bytes]) -> None:
        """After a disaster a group reads again, and once, what it had read since it was last seen: an order can't know more."""
        found, what = self.consumed[topic, partition], f"read of {topic}-{partition}"
        if self.plan.story.is_exact or topic not in self.moved:
            assert found == wanted, f"{what}: {_difference(wanted, found)}"
            return
        first = list(dict.fromkeys(found))
        assert first == [each for each in wanted if each in first], f"{what}: {_difference(wanted, first)}"
        unread = set(wanted) - set(found) - self.lost
        assert not unread, f"never {what}: {sorted(unread)}"
        again = [each for each, times in Counter(found).items() if times > 1 + (each in self.unseen)]
        assert not again, f"{what} again, although it was seen: {again}; since it was seen: {sorted(self.unseen)}"

    def _values(self, topic: str, side: Side) -> dict[int, list[bytes]]:
        return {number: [each.value or b"" for each in records] for number, records in self.log(topic, side).items()}

    def _rescued(self, topic: str) -> list[bytes]:
        names = [name for name in topics_of(self.sides.west) if name.startswith(f"{self.remote[topic]}.rescued.")]
        return [each.value or b"" for name in names for its in read_all(self.sides.west, name).values() for each in its]


def _difference(wanted: list[bytes], found: list[bytes]) -> str:
    missing, more = [each for each in wanted if each not in found], [each for each in found if each not in wanted]
    twice = sorted({each for each in found if found.count(each) > 1})
    return f"missing {missing}, unknown {more}, twice {twice}" if missing or more or twice else f"order: {found}"

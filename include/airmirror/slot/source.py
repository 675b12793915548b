"""The fetch side of a slot: a request a broker under way, for all partitions that it leads and that are not done.

A broker that is far away has several under way, each on a connection of its own for a part of the partitions: one answer a
round trip, and one TCP window, do not fill a long line. What comes waits in the kernel until it is this answer's turn. Where
there are fewer partitions than that, each of their fetches is so much larger: a partition has one fetch under way.

Nothing is asked for while the flow's limit says so (``throttle.bytes.per.second``), or of a broker that has asked to be left
alone for a time (its quotas).
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from airmirror.clusters.protocol.connection import BrokerUnreachable, Connection
from airmirror.clusters.protocol.errors import UNKNOWN_SERVER_ERROR, error_name
from airmirror.clusters.protocol.log import (
    EARLIEST,
    LATEST,
    MOVED,
    OFFSET_OUT_OF_RANGE,
    offsets_with_patience,
    receive_fetch,
    send_fetch,
)
from airmirror.clusters.protocol.routes import TOPIC_DENIED, LeaderNotAvailable, Routes
from airmirror.clusters.protocol.topic_configs import is_compacted
from airmirror.clusters.protocol.waiting import LOOK_SECONDS, ready
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Slot
from airmirror.slot.errors import AccessLost, PartitionUnavailable, SourceDiverged, SourceTruncated, TopicRecreated
from airmirror.slot.intake import Intake
from airmirror.slot.limit import Limit
from airmirror.slot.pace import Pace
from airmirror.wire.requests import Fetched, FetchPosition

FETCH_BYTES = 4 << 20
DECODED_FETCH_BYTES = 2 << 20  # where records are decoded: what decodes them takes half of a slot's memory
LEAST_PARTITION_BYTES = 1 << 20
FETCH_WAIT_MS = 500
MOST_LANES = 8  # fetches under way to one broker
LANES = ("fetch", *(f"fetch {number}" for number in range(2, MOST_LANES + 1)))  # the purposes of their connections
LANE_SECONDS = 0.0125  # of a round trip, for each of which there is a lane: FETCH_BYTES in it are some 300 MB/s
REST_SECONDS = 0.1  # between two looks at what is due, where nothing may be fetched
ANSWER_SECONDS = 30.0  # a broker that is stopped keeps its connections open and says nothing
SILENT_SECONDS = 300.0  # for which a broker that can't be connected to in a second is asked nothing: others come first
LEAST_PAUSE, MOST_PAUSE = 0.05, 2.0  # seconds before a broker that had nothing to give is asked again


def lanes_for(round_trip: float) -> int:
    """Return the number of fetches of FETCH_BYTES that are on a line at a time; ``round_trip`` in seconds."""
    return min(MOST_LANES, max(1, round(round_trip / LANE_SECONDS)))


@dataclass(frozen=True)
class _Asked:
    """A fetch under way: the version that its answer has, the partitions that it is about, and since when."""

    version: int
    partitions: frozenset[TopicPartition]
    since: float  # by time.monotonic


class Source:
    """The fetch side: requests under way for all partitions that are not done, each of which is in one of them."""

    def __init__(self, routes: Routes, slot: Slot, intakes: Sequence[Intake], pace: Pace, limit: Limit) -> None:
        self.pace, self.limit = pace, limit
        self._routes = routes
        self._read_committed = slot.flow.reads_committed
        self._intakes = {intake.partition.key: intake for intake in intakes}
        self._under_way: dict[tuple[int, str], _Asked] = {}  # by node and lane
        self._is_idle = False  # the last answer had waited, and brought nothing
        # A slot that follows is asked nothing by an idle log: it must come to its commit all the same.
        self._wait_ms = min(FETCH_WAIT_MS, slot.flow.window.follow_commit_ms) if slot.follow_ms else FETCH_WAIT_MS
        self._pause = LEAST_PAUSE
        self.most_bytes = 0  # of the fetch that was asked for last
        self._silent: dict[int, float] = {}  # brokers that are asked nothing, until when

    def ask(self) -> None:
        """Send a fetch on every lane that has none under way, for partitions that are not done and not asked for.

        None is sent while the flow's limit, or the broker's quota, says so. A partition that has moved is asked for again
        only when the fetch of its old leader is answered or given up.
        """
        if self.limit.seconds:
            return
        asked = {partition: node for (node, _), each in self._under_way.items() for partition in each.partitions}
        busy = Counter(asked.values())
        by_node: dict[int, list[Intake]] = {}
        for partition, intake in self._intakes.items():
            if not intake.is_done and partition not in asked:
                by_node.setdefault(self._routes.leader(partition).node, []).append(intake)
        for node, intakes in by_node.items():
            lanes = self._lanes(node)
            total = len(intakes) + busy[node]
            part = math.ceil(total / len(lanes))
            times = len(lanes) // math.ceil(total / part)
            free = [lane for lane in lanes if (node, lane) not in self._under_way]
            for lane, first in zip(free, range(0, len(intakes), part), strict=False):
                self._fetch(node, lane, intakes[first : first + part], times)

    def _lanes(self, node: int) -> Sequence[str]:
        """The lanes to a broker: as many as its distance takes, where the flow has no limit and there is enough to fetch."""
        if self.limit.is_set or self._is_idle:
            return LANES[:1]
        return LANES[: lanes_for(self._routes.round_trip(node))]

    def _fetch(self, node: int, lane: str, intakes: Sequence[Intake], times: int) -> None:
        deliveries = [intake.delivery for intake in self._intakes.values()]
        decodes = any(each.decodes for each in deliveries)
        # For a far target more is merged at once: what a fetch leaves over is a small batch, which takes a large one's place.
        for_decoding = FETCH_BYTES if deliveries[0].context.merging.is_far else DECODED_FETCH_BYTES
        size = for_decoding if decodes else FETCH_BYTES * times
        self.most_bytes = most = int(min(size, self.pace.bytes, self.limit.most))
        share = max(most // len(intakes), min(most, LEAST_PARTITION_BYTES))
        positions = {}
        for intake in intakes:
            key = intake.partition.key
            leader = self._routes.leader(key)
            positions[key] = FetchPosition(intake.fetched_from, leader.epoch, intake.leader_epoch, share)
        begun = time.monotonic()
        if begun < self._silent.get(node, 0.0):
            for intake in intakes:
                intake.withheld = "its leader says nothing"
            return
        try:
            connection = self._connection(node, lane)
            if connection.throttle.seconds:
                return
            version = send_fetch(
                self._routes,
                connection,
                positions,
                max_wait_ms=self._wait_ms,
                max_bytes=most,
                read_committed=self._read_committed,
            )
        except BrokerUnreachable:
            if time.monotonic() - begun > LOOK_SECONDS:  # the others have waited for it
                self._silent[node] = time.monotonic() + SILENT_SECONDS
            self._look_again(node)
        else:
            self._under_way[node, lane] = _Asked(version, frozenset(positions), time.monotonic())

    def answer(self) -> tuple[memoryview, list[tuple[Intake, Fetched]]]:
        """Wait for one broker's answer; nothing where none comes for a while, or a leader has moved, which is found again."""
        connections = {self._connection(*way): way for way in self._under_way}
        if not connections:
            self._rest()
            return memoryview(b""), []
        answering = ready(connections, LOOK_SECONDS)
        late = time.monotonic() - ANSWER_SECONDS
        silent = [
            each for each, way in connections.items() if self._under_way[way].since < late and not ready([each], 0.0)
        ]
        if silent and not answering:
            broker = ", ".join(connection.broker for connection in silent)
            raise BrokerUnreachable(self._routes.alias, broker, f"no answer to a fetch for {ANSWER_SECONDS:g} s")
        if silent:  # others answer, so nothing else would end the wait; its partitions may have another leader by now
            self._look_again(connections[silent[0]][0])
        if silent or not answering:
            return memoryview(b""), []  # there may be something else to do
        connection = answering[0]
        node, lane = connections[connection]
        asked = self._under_way.pop((node, lane))
        try:
            buffer, partitions = receive_fetch(self._routes, connection, asked.version)
            self.limit.took(len(buffer))
        except BrokerUnreachable:
            self._look_again(node)
            return memoryview(b""), []
        found = []
        moved = failed = False
        for partition, fetched in partitions.items():
            if partition not in asked.partitions:
                raise connection.nonsense(f"its answer to a fetch has {partition}, which it was not asked for")
            intake = self._intakes[partition]
            if fetched.error == UNKNOWN_SERVER_ERROR:
                intake.withheld, failed = error_name(fetched.error), True
            elif fetched.error in MOVED:
                moved = True
            elif fetched.error == OFFSET_OUT_OF_RANGE and intake.looks_back:
                intake.looks_back = False  # retention has come up to the position, or it is out of range as well
            elif not self._is_purged(intake, fetched):
                self._check(intake, fetched)
                found.append((intake, fetched))
                # A broker fills its answer in the order asked: who was served goes to the end of the queue.
                self._intakes[partition] = self._intakes.pop(partition)
        if moved:
            self._look_again(node)
        elif failed and all(fetched.start == fetched.end for _, fetched in found):
            self._back_off()  # such an answer comes at once
        else:
            self._pause = LEAST_PAUSE
        self._is_idle = bool(found) and all(fetched.start == fetched.end for _, fetched in found)
        self._look_at_empty(found)
        return buffer, found

    def _rest(self) -> None:
        """Wait for a short while where nothing may be asked for now."""
        self.limit.wait(REST_SECONDS)
        if not self._under_way and (seconds := max(map(self._routes.rest, LANES))):
            time.sleep(min(seconds, REST_SECONDS))  # the broker has said for how long
        elif self._silent and not self._under_way:
            time.sleep(REST_SECONDS)

    def took(self, answers: Sequence[tuple[Intake, Fetched]], seconds: float) -> None:
        """The target took what these answers had in ``seconds``."""
        size = sum(fetched.end - fetched.start for _, fetched in answers)
        self.pace.took(size, seconds, FETCH_BYTES * MOST_LANES)

    def _look_at_empty(self, found: Sequence[tuple[Intake, Fetched]]) -> None:
        """See what partitions without a batch in an answer mean (invariant E).

        A hole is proven by a batch that follows it. An empty answer proves nothing: a broker gives one when its remote
        store is slow (KIP-405). Only a compacted topic, which has no remote store, may end in holes: where a fetch that
        waited brought nothing of any partition, and the planned end can be read.
        """
        waited = all(fetched.start == fetched.end for _, fetched in found)
        for intake, fetched in found:
            end = fetched.last_stable_offset if self._read_committed else fetched.high_watermark
            if fetched.start < fetched.end or intake.position >= end >= intake.planned:
                intake.withheld = ""
            elif waited and end < intake.planned:
                intake.withheld = f"it can be read up to {end} only"
            elif waited and intake.partition.compacted and is_compacted(self._routes, intake.partition.topic):
                intake.nothing_more(min(end, intake.end))
            elif waited:
                intake.withheld = "an answer without records"

    def check_topics(self) -> None:
        """If fetches go by name, check before every commit that the topics are still the same ones."""
        nodes = {self._routes.leader(partition).node for partition in self._intakes}
        if any(node in self._silent or self._connection(node).fetch_version < 13 for node in nodes):
            self._refresh()

    def _connection(self, node: int, lane: str = LANES[0]) -> Connection:
        return self._routes.connection(node, lane)

    def _is_purged(self, intake: Intake, fetched: Fetched) -> bool:
        """Return whether what was asked for is gone, and was handled before it went: the log's beginning comes next."""
        if fetched.error != OFFSET_OUT_OF_RANGE or not intake.partition.purged:
            return False
        begin = offsets_with_patience(self._routes, [intake.partition.key], EARLIEST)[intake.partition.key]
        if begin <= intake.position:
            return False
        intake.purged(begin)
        return True

    def _check(self, intake: Intake, fetched: Fetched) -> None:
        partition, alias = intake.partition, self._routes.alias
        where = (alias, *partition.key)
        if fetched.diverging_epoch >= 0:
            raise SourceDiverged(*where, intake.position, fetched.diverging_epoch, fetched.diverging_end_offset)
        if fetched.error == OFFSET_OUT_OF_RANGE:
            # the answer itself does not say where the log begins and ends
            start, end = (
                offsets_with_patience(self._routes, [partition.key], at)[partition.key] for at in (EARLIEST, LATEST)
            )
            if start <= intake.position <= end:  # the next plan asks whether it is still the same log
                reason = f"its leader says that offset {intake.position} is out of range, and its log {start} to {end}"
                raise PartitionUnavailable(*where, reason)
            raise SourceTruncated(*where, intake.position, start, end)
        if fetched.error == TOPIC_DENIED:
            raise AccessLost(*where, alias, partition.topic, "Read")
        if fetched.error:
            raise PartitionUnavailable(*where, error_name(fetched.error))

    def _refresh(self) -> None:
        """Read the metadata again; what is fetched after that are still the same topics. Raises TopicRecreated."""
        self._routes.refresh({partition.topic for partition in self._intakes})
        for intake in self._intakes.values():
            partition, now = intake.partition, self._routes.topic_ids[intake.partition.topic]
            if now != partition.source_topic_id:
                raise TopicRecreated(
                    self._routes.alias, partition.topic, partition.partition, str(partition.source_topic_id), str(now)
                )

    def _look_again(self, node: int) -> None:
        """Find the leaders again, after a backoff: nothing tells when one is elected or a broker is back."""
        for lane in LANES:
            self._routes.drop(node, lane)
            self._under_way.pop((node, lane), None)
        for intake in self._intakes.values():
            intake.look_back()  # a broker that was gone may be back with another disk
        self._back_off()
        try:
            self._refresh()
        except (BrokerUnreachable, LeaderNotAvailable):
            if self._pause >= MOST_PAUSE:
                raise

    def _back_off(self) -> None:
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, MOST_PAUSE)

"""The keys by which MirrorMaker 2 is tuned: what Airmirror does by itself, what to set instead, and what that costs.

``airmirror config`` says it for the keys of a file, docs/tuning.md for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airmirror.config.errors import Problem
from airmirror.config.explain import placed
from airmirror.config.keys.clients import ROLES
from airmirror.config.model import Configuration
from airmirror.config.places import client_setting


@dataclass(frozen=True)
class Advice:
    """One row for keys that are tuned for the same reason, in words. ``instead`` and ``costs`` may be empty."""

    words: str
    here: str
    instead: str = ""
    costs: str = ""

    @property
    def keys(self) -> list[str]:
        return self.words.split()

    def __str__(self) -> str:
        instead = f" Instead: {self.instead}." if self.instead else ""
        return f"{self.here}.{instead}" + (f" It costs {self.costs}." if self.costs else "")


THROUGHPUT = (
    Advice(
        "tasks.max",
        "A window takes a slot for each 64 MiB that it has to copy, tasks.max at most; not set, or auto: what Spark runs at once "
        "now, divided by the enabled flows, and more where its lag is old",
        "window.slot.bytes for how soon it takes more, window.max.ms for how old a lag is, tasks.max for the cores that the flow "
        "may hold",
        "a core and up to 256 MiB of memory for each slot, as long as the window lasts",
    ),
    Advice(
        "fetch.max.bytes max.partition.fetch.bytes",
        "A slot asks a broker for 256 KiB first, then for up to 4 MiB at once (2 MiB where it must decode records), and no more "
        "than the target takes in an eighth of a transaction's time",
        "throttle.bytes.per.second, where it should be less",
        "lag",
    ),
    Advice(
        "fetch.min.bytes fetch.max.wait.ms",
        "A broker answers as soon as it has anything, and is asked again after half a second (a window that follows: after "
        "window.follow.commit.ms)",
    ),
    Advice(
        "max.poll.records max.poll.interval.ms consumer.poll.timeout.ms session.timeout.ms heartbeat.interval.ms",
        "Slots are in no consumer group: they fetch from their partitions' leaders, and no rebalance takes partitions from them",
    ),
    Advice(
        "receive.buffer.bytes send.buffer.bytes",
        "A connection of a slot receives into 4 MiB where net.core.rmem_max allows that; else, and for what it sends, the kernel "
        "finds the size by itself",
        "the last numbers of net.ipv4.tcp_rmem and tcp_wmem of the executors' kernel (docs/far-away.md)",
        "memory of the kernel, at most that much a connection",
    ),
    Advice(
        "batch.size",
        "Batches are written as they were read, whole; consecutive small ones of a partition are merged, up to 256 KiB",
    ),
    Advice(
        "buffer.memory max.block.ms",
        "A slot fetches more only when what it fetched before is written and, but for two fetches, read back; nothing else "
        "is buffered",
    ),
    Advice(
        "compression.type compression.gzip.level compression.lz4.level compression.zstd.level",
        "Batches without compression are written with it, record by record the same; what is compressed stays as it is. "
        "By itself (none) everything does",
        "it, for a narrow line between slots and target; compression.type of the remote topic, for what the target keeps",
        "processor time of slots, which take records apart, compress and compare them; with the remote topic's also of brokers",
    ),
    Advice(
        "max.request.size",
        "A request has up to 16 MiB, with one batch of each partition; a batch must fit max.message.bytes of its remote topic",
        "max.message.bytes of the remote topic, which is synchronised with the source's",
    ),
    Advice(
        "acks enable.idempotence max.in.flight.requests.per.connection retries",
        "Everything is written with acks=all, in transactions, up to five requests under way to a broker, each batch once and in "
        "order",
    ),
)

LATENCY = (
    Advice(
        "linger.ms",
        "What a fetch has brought is written at once",
        "window.follow.ms, and window.follow.commit.ms for the time between two commits",
        "a transaction each time, with a mapping record of some 200 bytes for each partition that got anything",
    ),
    Advice(
        "offset.flush.interval.ms offset.flush.timeout.ms",
        "Progress is committed with the records: after 10 s or 256 MiB, while a window follows the log every 250 ms",
        "window.commit.ms, window.commit.bytes, window.follow.commit.ms",
        "consumers with read_committed as long a wait, and more that is copied again after a fault",
    ),
    Advice(
        "transaction.timeout.ms",
        "60 s, for the transactions of slots; a partition that takes no records is left out after half of it",
        "target.producer.transaction.timeout.ms at the flow",
        "consumers with read_committed as long a wait where a slot was lost and no window comes after it",
    ),
    Advice(
        "request.timeout.ms delivery.timeout.ms retry.backoff.ms retry.backoff.max.ms reconnect.backoff.ms",
        "A slot gives a silent broker up after 30 s (a write: 40 s), begins again from what is committed after 0.1 to 5 s, and "
        "ends 15 s after its window's time at the latest",
        "window.max.ms",
    ),
    Advice(
        "metadata.max.age.ms",
        "Leaders are looked for when a window begins and when one has moved; new topics and partitions are the next window's",
        "window.schedule",
    ),
    Advice(
        "refresh.topics.interval.seconds sync.topic.configs.interval.seconds sync.topic.acls.interval.seconds",
        "Every window looks for new topics, partitions, configs and ACLs; one that follows the log again after the shortest of "
        "them, and within seconds where topics or partitions are new",
        "window.schedule",
    ),
    Advice("refresh.groups.interval.seconds", "Every window looks for new groups"),
    Advice(
        "scheduled.rebalance.max.delay.ms rebalance.timeout.ms",
        "There is no rebalance: Spark starts a slot that has died again at once, on any executor",
    ),
    Advice(
        "exactly.once.source.support exactly.once.support transaction.boundary transaction.boundary.interval.ms",
        "Every window is exactly once",
    ),
)

OFFSETS = (
    Advice(
        "offset.lag.max",
        "Airmirror translates positions exactly, from its mapping records; it writes offset syncs for MirrorMaker 2's tools and "
        "clients, at most 10 between the first and the last of a range",
        "offset.syncs.per.window, where such clients need more",
        "records of mm2-offset-syncs…, which MirrorMaker 2 reads whole when it starts",
    ),
    Advice(
        "emit.checkpoints.interval.seconds",
        "As there: after a window, and while one follows the log",
        costs="a transaction, and a read of all groups' positions, each time",
    ),
    Advice(
        "sync.group.offsets.interval.seconds",
        "As there, from 0.5 on, and to exact positions: after a window, and while one follows the log",
        "with window.follow.ms a low one keeps groups seconds behind",
        "a read of all groups' positions on both clusters each time",
    ),
    Advice(
        "emit.heartbeats.interval.seconds",
        "As there: by the DAG heartbeats, or `airmirror heartbeat`",
    ),
)

ADVICE = (*THROUGHPUT, *LATENCY, *OFFSETS)

_BY_KEY = {key: advice for advice in ADVICE for key in advice.keys}


def advised(configuration: Configuration) -> Iterator[Problem]:
    """The settings of a file that are of these keys, in the file's order, each with its advice."""
    for entry in placed(configuration):
        setting = client_setting(entry.at)
        role, _, name = (setting.property if setting else entry.at.name).partition(".")
        bare = name if role in ROLES else f"{role}.{name}" if name else role
        if bare in _BY_KEY:
            yield Problem(entry.setting.line, entry.setting.key, str(_BY_KEY[bare]))

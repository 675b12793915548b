"""Transactions on the source that no coordinator will end: a log has their records, but no coordinator shows them (KIP-664).

The last stable offset stays below such a transaction for ever, so under ``read_committed`` nothing after it is ever
copied. Looked for only where a partition has nothing to copy below its last stable offset, and records above it. Coordinators
leave out, without a word, what this user may not describe: an administrator decides whether one hangs, and ends it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from airmirror.clusters.protocol.connection import UnsupportedBroker
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.producers import ActiveProducer, active_producers, transactions_at
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.topic_configs import configs_at
from airmirror.partitions import TopicPartition
from airmirror.windows.errors import HangingTransaction
from airmirror.windows.plan import Planned

BROKER = 4  # DescribeConfigs' resource type
LONGEST_MS = 900_000  # Kafka's default of transaction.max.timeout.ms


def name_hanging(source: Routes, planned: Sequence[Planned]) -> list[Planned]:
    """``planned`` with an error for each partition that only a hanging transaction keeps back.

    Brokers before Kafka 3.0 can't be asked; their partitions show as lag only.
    """
    waiting = {
        item.key: item for item in planned if item.error is None and item.start == item.end < item.high_watermark
    }
    if not waiting:
        return list(planned)
    try:
        begun = _long_open(source, waiting)
        known = _known(source, {each.producer_id for each in begun.values()}) if begun else set()
    except UnsupportedBroker:
        return list(planned)
    suspects = {key: each for key, each in begun.items() if each.producer_id not in known}
    # A transaction that ended between the two questions has moved the last stable offset by now.
    stable = offsets_with_patience(source, list(suspects), LATEST, read_committed=True)
    errors = {}
    for key, each in suspects.items():
        end, left = waiting[key].end, waiting[key].high_watermark - waiting[key].end
        if stable[key] == end:
            errors[key] = HangingTransaction(source.alias, *key, each.producer_id, each.epoch, each.open_from, left)
    return [replace(item, error=errors.get(item.key, item.error)) for item in planned]


def _long_open(source: Routes, partitions: Collection[TopicPartition]) -> dict[TopicPartition, ActiveProducer]:
    """Return the first open transaction by partition, if it is open for longer than any may be."""
    begun = [each for each in active_producers(source, partitions).found if each.open_from >= 0]
    first = {each.partition: each for each in sorted(begun, key=lambda each: each.open_from, reverse=True)}
    longest = {node: _longest_ms(source, node) for node in {source.leader(key).node for key in first}}
    now_ms = time.time() * 1000
    return {key: each for key, each in first.items() if each.last_ms < now_ms - longest[source.leader(key).node]}


def _longest_ms(source: Routes, node: int) -> int:
    """A broker's ``transaction.max.timeout.ms``; Kafka's default where this user may not see it."""
    results = configs_at(source.connection(node), BROKER, [str(node)], ["transaction.max.timeout.ms"])
    values = [config.value for result in results for config in result.configs or ()]
    return int(values[0]) if values and values[0] else LONGEST_MS


def _known(source: Routes, producer_ids: Collection[int]) -> set[int]:
    """Those of the producers that a coordinator shows a transaction of; each coordinator knows its own only."""
    found: set[int] = set()
    for node in source.nodes:
        answer = transactions_at(source, node, ["Ongoing", "PrepareCommit", "PrepareAbort"], producer_ids)
        if answer.error_code:  # a coordinator that is still loading may know them
            return set(producer_ids)
        found |= {state.producer_id for state in answer.transaction_states}
    return found

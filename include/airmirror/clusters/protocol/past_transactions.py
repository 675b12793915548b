"""The topics that transactional ids have written together in transactions that have ended, as ``__transaction_state`` tells.

Only the newest records of each of its partitions are read, for a bounded time: a cluster's log is as long as it likes. The topic
is internal: a user needs READ on it, which few have.
"""

from __future__ import annotations

import time

from airmirror.clusters.protocol.errors import FetchFailed
from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience, read_records
from airmirror.clusters.protocol.routes import Routes, TopicNotDescribed
from airmirror.wire.primitives import MalformedRecord
from airmirror.wire.transaction_states import topics_of, transactional_id

TRANSACTION_STATE = "__transaction_state"
PAST_MS = 7 * 24 * 3_600_000  # who has not tied topics for so long does not any more
MOST_RECORDS = 5_000  # of a partition, the newest
MOST_SECONDS = 10.0
PATIENCE_SECONDS = 5.0


def past_transactions(routes: Routes) -> dict[str, set[str]]:
    """Return topics by the transactional id that has written them; nothing where no transaction was ever begun.

    Raises FetchFailed, ReadDenied or TopicNotDescribed where this user may not read it, or a cluster's error.
    """
    missing = routes.refresh_existing([TRANSACTION_STATE]).get(TRANSACTION_STATE)
    if isinstance(missing, TopicNotDescribed):
        raise missing
    if missing is not None:
        return {}
    keys = routes.keys([TRANSACTION_STATE])
    starts, ends = offsets_with_patience(routes, keys, EARLIEST), offsets_with_patience(routes, keys, LATEST)
    found: dict[str, set[str]] = {}
    since_ms, is_up = time.time() * 1000 - PAST_MS, time.monotonic() + MOST_SECONDS
    for key in keys:
        start = max(starts[key], ends[key] - MOST_RECORDS)
        for record in read_records(routes, key, start, ends[key], read_committed=False, patience=PATIENCE_SECONDS):
            try:
                name, topics = transactional_id(record.key), topics_of(record.value)
            except MalformedRecord as error:
                raise FetchFailed(routes.alias, key, str(error), record.offset) from error
            if record.value is None and name is not None:
                found.pop(name, None)  # the cluster has forgotten it
            elif name is not None and topics and record.timestamp >= since_ms:
                found.setdefault(name, set()).update(topics)
            if time.monotonic() > is_up:
                return found
    return found

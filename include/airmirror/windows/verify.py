"""The verified offset: judging what was committed since the last one, and writing down what passed (invariant F).

What the window that just ended has committed was read back by its slots before the commit; what an interrupted window
left is read from the target now, and compared with the digests of its segments, then with the source where they differ.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from airmirror.clusters.appender import Appender
from airmirror.clusters.routes import Routes
from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.windows.compare import account_error, compare, digest_equal
from airmirror.windows.index import Index
from airmirror.wire.requests import TopicPartition
from airmirror.wire.segments import Hold, SegmentRecord, Verified


@dataclass(frozen=True)
class Verdict:
    """A partition's judgement: everything up to ``offset`` (a source offset) is verified, or what is wrong."""

    topic: str
    partition: int
    offset: int
    records: int
    error: AirmirrorError | None

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def verify(
    flow: Flow,
    index: Index,
    source: Routes,
    target: Routes,
    appender: Appender,
    *,
    window: str,
    read_back: Collection[str],
    compacted: Mapping[str, bool],
) -> list[Verdict]:
    """Judge every unverified segment record; write the verified offset of what passed, a hold for what did not.

    ``read_back``: windows whose slots have compared before they committed. A hold is lifted when its partition passes.
    """
    now = int(time.time() * 1000)
    verdicts: list[Verdict] = []
    records: list[tuple[bytes, bytes | None]] = []
    holds = index.holds()
    known = index.verified()
    for key, group in groupby(index.unverified(), key=lambda record: TopicPartition(record.topic, record.partition)):
        segments = list(group)
        last = segments[-1]
        passed = known.get(key)
        start = passed.offset + 1 if passed and passed.source_topic_id == last.source_topic_id else None
        error = account_error(flow.source.alias, segments, compacted.get(key.topic, False), start)
        doubtful = [segment for segment in segments if segment.window not in read_back]
        if error is None and doubtful:
            error = _target_error(flow, source, target, doubtful)
        copied = sum(segment.copied for segment in segments)
        verdicts.append(Verdict(*key, last.source_end - 1, copied, error))
        if error is None:
            record = Verified(
                *key, last.source_topic_id, last.source_end - 1, _target_end(segments, passed), window, now
            )
            records.append((record.encode_key(), record.encode_value()))
            if key in holds:
                records.append((holds[key].encode_key(), None))
        elif not error.transient:
            hold = Hold(*key, segments[0].source_start, str(error), window, "gate", now)
            records.append((hold.encode_key(), hold.encode_value()))
    if records:
        appender.append(records)
    return verdicts


def _target_end(segments: Sequence[SegmentRecord], passed: Verified | None) -> int:
    ends = [segment.target_end for segment in segments if segment.copied]
    return ends[-1] if ends else passed.target_end if passed else 0


def _target_error(
    flow: Flow, source: Routes, target: Routes, segments: Sequence[SegmentRecord]
) -> AirmirrorError | None:
    """Read the target again: by digest, and where that differs record by record from both logs."""
    read_committed = flow.isolation_level == "read_committed"
    try:
        target.refresh({segment.remote_topic for segment in segments})
        for segment in segments:
            if not digest_equal(target, segment):
                source.refresh([segment.topic])
                error = compare(source, target, segment, read_committed=read_committed).error
                if error is not None:
                    return error
    except AirmirrorError as error:
        return error
    return None

"""The console's page of one record: on the source, and its copy on the target, side by side. Reads both clusters."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster, Flow
from airmirror.errors import AirmirrorError
from airmirror.evidence.single import PATIENCE, LogBounds, Single, bounds, differences, first_from, single
from airmirror.ledger import Ledger
from airmirror.ledger.database import reading
from airmirror.ledger.showing import covering
from airmirror.partitions import TopicPartition
from airmirror.wire.mappings import MappingRecord

MOST_SHOWN = 64 << 10  # bytes of a key, a value or a header
MOST_HEADERS = 100
MOST_AT_ONCE = 4  # pages that read Kafka
MASKED = "masked"
_turns = threading.BoundedSemaphore(MOST_AT_ONCE)


class TooManyReaders(Exception):
    """As many pages as are allowed read the clusters now."""


@contextmanager
def turn() -> Iterator[None]:
    """One of the pages that may read Kafka at a time. Raises TooManyReaders."""
    if not _turns.acquire(blocking=False):
        raise TooManyReaders
    try:
        yield
    finally:
        _turns.release()


def record_page(ledger: Ledger, flow: Flow, key: TopicPartition, offset: int | None, time_ms: int) -> dict[str, Any]:
    """The record at ``offset``, or the first that is not earlier than ``time_ms``, and its copy; what can't be read says why."""
    found: dict[str, Any] = {"topic": key.topic, "partition": key.partition, "offset": offset}
    mask = frozenset(name.casefold() for name in flow.settings.console_records_mask)
    here: Single | None = None
    try:
        with _routes(flow.source) as routes:
            log = bounds(routes, key)
            if offset is None:
                offset = first_from(routes, key, time_ms)
            found |= {"offset": offset, "start": log.start, "end": log.end}
            here = single(routes, key, offset) if log.start <= offset < log.end else None
            found["source"] = _shown(here, mask) if here else {"missing": _why_not(offset, log)}
    except AirmirrorError as error:
        found["source"] = {"missing": str(error)}
    if offset is None or offset < 0:
        return found | {"offset": None, "target": {"missing": "it is not known which record is meant"}}
    with reading(ledger.engine) as connection:
        record = covering(connection, flow.name, (key.topic, key.partition), offset)
    at = None if record is None else _target(record, offset)
    if record is None or at is None:
        return found | {"target": {"missing": _not_copied(record)}}
    found |= {"remote_topic": record.remote_topic, "target_offset": at, "window": record.window}
    there: Single | None = None
    place = TopicPartition(record.remote_topic, key.partition)
    try:
        with _routes(flow.target) as routes:
            log = bounds(routes, place)
            there = single(routes, place, at) if log.start <= at < log.end else None
            found["target"] = _shown(there, mask) if there else {"missing": _why_not(at, log)}
    except AirmirrorError as error:
        found["target"] = {"missing": str(error)}
    return found | {"differences": list(differences(here, there)) if here and there else None}


def _routes(cluster: Cluster) -> Routes:
    return Routes(cluster, "airmirror-console", timeout=PATIENCE)


def _target(record: MappingRecord, offset: int) -> int | None:
    for run in record.ranges:
        if run.source_first <= offset < run.source_end:
            return run.target_first + offset - run.source_first
    return None


def _why_not(offset: int, log: LogBounds) -> str:
    if offset < 0:
        return "no record is as late as that"
    if offset < log.start:
        return f"deleted there: the log begins at offset {log.start}"
    if offset >= log.end:
        return f"not there yet: the log is stable up to offset {log.end}"
    return "no record is at this offset: it is a control record, or it was compacted away"


def _not_copied(record: MappingRecord | None) -> str:
    if record is None:
        return "no window has accounted for this offset, or its mapping record was pruned"
    others = [
        f"{getattr(record, name)} {name}" for name in ("control", "aborted", "holes", "lost") if getattr(record, name)
    ]
    return f"not copied: of its range, {' and '.join(others) or 'nothing'} of the source's offsets were not"


def _shown(record: Single, mask: frozenset[str]) -> dict[str, Any]:
    return {
        "timestamp": record.timestamp,
        "aborted": record.is_aborted,
        "key": _bytes(record.key, mask),
        "value": _bytes(record.value, mask),
        "headers": [
            {"name": name.decode(errors="replace")[:1_000]}
            | (_hidden(value) if name.decode(errors="replace").casefold() in mask else _bytes(value, mask))
            for name, value in record.headers[:MOST_HEADERS]
        ],
        "headers_in_all": len(record.headers),
    }


def _hidden(value: bytes | None, why: str = MASKED) -> dict[str, Any]:
    return {"bytes": None if value is None else len(value), "hidden": why}


def _bytes(value: bytes | None, mask: frozenset[str]) -> dict[str, Any]:
    """Bytes as text, JSON and hex; with fields to mask only as JSON without them, since they could be anywhere else."""
    if value is None:
        return {"bytes": None}
    shown: dict[str, Any] = {"bytes": len(value)}
    if mask:
        as_json = _json(value, mask)
        if as_json is None:
            return _hidden(value, "no JSON, so that what console.records.mask names could be anywhere in it")
        return shown | {"json": as_json[:MOST_SHOWN], "cut": len(as_json) > MOST_SHOWN}
    head = value[:MOST_SHOWN]
    shown |= {"hex": head.hex(" "), "cut": len(value) > MOST_SHOWN}
    try:
        shown["text"] = head.decode() if len(head) == len(value) else head.decode(errors="ignore")
    except UnicodeDecodeError:
        return shown
    as_json = None if shown["cut"] else _json(value, mask)
    return shown if as_json is None else shown | {"json": as_json[:MOST_SHOWN]}


def _json(value: bytes | str, mask: frozenset[str]) -> str | None:
    """An object or a list, indented, the values of masked fields replaced. None: it is no such JSON."""
    try:
        parsed = json.loads(value)
        if not isinstance(parsed, dict | list):
            return None
        return json.dumps(_without(parsed, mask) if mask else parsed, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _without(value: Any, mask: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: MASKED if name.strip().casefold() in mask else _without(inner, mask) for name, inner in value.items()
        }
    if isinstance(value, str):
        return _text_without(value, mask)
    return [_without(inner, mask) for inner in value] if isinstance(value, list) else value


def _text_without(text: str, mask: frozenset[str]) -> str:
    """A text of JSON: what is JSON itself, as in envelopes, without the masked fields; what only names one, such as lines of JSON
    or JSON that was cut, is masked as a whole."""
    try:
        inside = json.loads(text)
    except (ValueError, RecursionError):
        inside = None
    if isinstance(inside, str):  # encoded twice
        return json.dumps(_text_without(inside, mask), ensure_ascii=False)
    if isinstance(inside, dict | list):
        return json.dumps(_without(inside, mask), indent=2, ensure_ascii=False)
    names = "|".join(map(re.escape, mask))
    is_named = "\\u" in text or re.search(rf"(?<!\w)(?:{names})(?!\w)", text.casefold())
    return MASKED if is_named else text


def who(user: Any) -> str:
    """The user's name for the log, where the auth manager has one."""
    name: Sequence[str] = getattr(user, "get_name", lambda: str(user))()
    return str(name)[:200]

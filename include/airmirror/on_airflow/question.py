"""The question that ``decide.<source>.<target>`` asks: the answers, what each does and costs, and the form as Markdown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airmirror.errors import counted
from airmirror.report.markdown import escape
from airmirror.times import utc

if TYPE_CHECKING:
    from airmirror.flows.decisions import HeldRange
    from airmirror.wire.mappings import Decision

VERIFY_AGAIN, LET_PASS, KEEP = "Verify again", "Let it pass", "Keep it held"
ACCEPT_LOSS, AGAIN, NEW_TOPIC = "Accept the loss", "Replicate again", "Replicate again into a new topic"
MOST_ASKED = 100  # partitions of one question; the others are asked about when these are decided
MOST_EARLIER = 10  # runs that may have asked before


@dataclass(frozen=True)
class Question:
    """A question as it is shown; ``body`` is Markdown. ``about``: what it is about, as JSON, besides what the run was triggered
    with."""

    subject: str
    body: str
    about: Any = None


@dataclass(frozen=True)
class Option:
    """An answer: what it does, and what it costs; whether it can be taken back."""

    name: str
    does: str
    costs: str
    is_final: bool


OPTIONS = (
    Option(VERIFY_AGAIN, "the gate reads {target} again; choose it after the cause is mended", "nothing", False),
    Option(
        LET_PASS,
        "the range passes whatever the expectations say; not where records differ, are missing or not accounted for",
        "consumers and checkpoints go past it",
        True,
    ),
    Option(
        ACCEPT_LOSS,
        "records that are not on {target} as they are on {source} are recorded as lost, equal ones count, and "
        "replication continues after them",
        "these records, for ever",
        True,
    ),
    Option(
        AGAIN,
        "these partitions begin again at {source}'s first offset, after what the remote topic holds",
        "every record of them is on {target} twice",
        True,
    ),
    Option(
        NEW_TOPIC,
        "the whole topic is replicated from its first offset into `<remote topic>.2` and continues there; the old remote "
        "topic stays as it is",
        "consumers need the new name",
        True,
    ),
    Option(KEEP, "nothing; `airmirror hold list` shows it", "the partitions wait", False),
)


def runs_about(held: Sequence[Sequence[Any]], decisions: Iterable[Decision], users: Collection[str]) -> tuple[str, ...]:
    """Return the ids of runs of ``decide.…`` about these holds (topic, partition, last offset): first of the one that is to ask
    now, then of those that may have asked before, the newest first.

    An id is made of the holds, of ``users``, who may answer, and of the newest decision about these partitions. Who keeps them
    held writes no decision: no run asks again.
    """
    keys = {(topic, number) for topic, number, _ in held}
    times = sorted({each.time_ms for each in decisions if each.key in keys}, reverse=True)
    about = [*sorted(map(list, held)), *sorted(filter(None, users))]
    said = (json.dumps([*about, *since]) for since in (*([each] for each in times[:MOST_EARLIER]), []))
    return tuple(f"incident__{hashlib.sha256(each.encode()).hexdigest()[:16]}" for each in said)


def options_table(source: str, target: str) -> str:
    """The answers as a Markdown table, those that can't be taken back marked."""
    lines = ["| answer | what it does | what it costs |", "|---|---|---|"]
    for option in OPTIONS:
        name = f"⚠ **{option.name}**, can't be undone" if option.is_final else f"**{option.name}**"
        lines.append(f"| {name} | {option.does} | {option.costs} |".format(source=source, target=target))
    return "\n".join(lines)


def question(held: Sequence[HeldRange], flow: str) -> str:
    """Return the holds and the possible decisions as Markdown. Every text that is not ours is escaped."""
    source, target = flow.split("->")
    lines = [
        f"The gate holds {counted(len(held), 'partition')} of **{escape(flow)}**; the others continue. Your answer is for "
        "every line of this table, as long as it is held at these offsets. *Airmirror*, *Decisions* in the navigation has the "
        "same question with a form.",
        "",
        "| topic | partition | offsets | records | held since (UTC) | why |",
        "|---|---|---|---|---|---|",
    ]
    for item in held:
        since = utc(item.since_ms, "%Y-%m-%d %H:%M:%S")
        lines.append(
            f"| {escape(item.topic)} | {item.partition} | {item.first:,} to {item.last:,} | {item.records:,} | {since} | "
            f"{escape(item.reason)} |"
        )
    runs = sorted({item.window.partition("#")[0] for item in held})
    lines += [
        "",
        f"First held in: {', '.join(map(escape, runs[:5]))}.",
        "",
        options_table(escape(source), escape(target)),
    ]
    return "\n".join(lines)

"""The titles of sections that several documents have, and what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airmirror.report.document import Row, Section

TITLES = {
    "clusters": ("Clusters", "The id is the cluster's own, written when it was made: two clusters never share one."),
    "contradictions": ("Contradictions", "What is not now as the record says that it was."),
    "partitions": (
        "Partitions",
        "A topic is a named log of records; it is split into partitions, in each of which records have numbers, their offsets. "
        "The end of a range is not included. Every offset of the source is counted once: copied, control (a mark of a "
        "transaction), aborted (its transaction was taken back), a hole (never written, or taken by compaction), or lost.",
    ),
    "windows": ("Windows", "A window is one run of replication."),
    "progress": ("Progress", ""),
    "holds": ("Held now", "Partitions that the gate, or an operator, keeps from counting as verified."),
    "decisions": ("Decisions", "What people have decided, and why."),
    "losses": ("Losses and new starts", "What was decided with `airmirror reset`."),
    "groups": (
        "Consumer groups",
        "A group is an application that reads; its position is the next offset that it reads.",
    ),
    "differences": ("Differences", "Every run of records that is not equal on both sides."),
    "ranges": ("Sample", "The ranges of offsets that were compared, the end not included. Nothing else was read."),
    "ledger": ("Ledger", "A database that mirrors the mapping topic, compared with it."),
    "expectations": ("Expectations", "The gate lets a window advance only if these hold. As they are now."),
    "versions": ("Versions and configuration", "The digest is of all settings that count; secrets are not in it."),
}


def titled(sections: Mapping[str, Sequence[Row]]) -> tuple[Section, ...]:
    """Sections by their names, in the order of the titles above. Raises KeyError for a name that is not among them."""
    return tuple(Section(name, sections[name], *TITLES[name]) for name in sorted(sections, key=list(TITLES).index))

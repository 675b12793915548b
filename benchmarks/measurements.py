"""What was measured, and the arithmetic of the targets: plain values, nothing is measured here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TUNED = "MirrorMaker 2, tuned"
DEFAULTS = "MirrorMaker 2, defaults"
ACKS = "Airmirror, acks"
READBACK = "Airmirror, readback"
APPEND_LIMIT = "broker's append limit"  # of batches as large as the topic's own, which are copied whole
RELAY_LIMIT = "relay limit"  # the source read and thrown away while the target takes hot batches
APPEND_LIMIT_LARGE = "broker's append limit, 1 MB batches"


@dataclass(frozen=True)
class Measurement:
    """``records`` copied in ``seconds``; ``processor_seconds`` of the client side (user and system), None if not taken."""

    records: int
    seconds: float
    processor_seconds: float | None = None

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / self.seconds

    @property
    def processor_microseconds(self) -> float | None:
        """Processor time a record, in µs."""
        return None if self.processor_seconds is None else self.processor_seconds / self.records * 1e6


Results = Mapping[str, Mapping[str, Measurement]]  # by data label, then by what was measured


@dataclass(frozen=True)
class Target:
    """A figure to reach; ``least`` tells a least figure from a largest one."""

    data: str
    what: str
    measured: float | None
    wanted: float
    least: bool = True
    unit: str = "×"

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        met = self.measured >= self.wanted if self.least else self.measured <= self.wanted
        return "met" if met else "missed"


def rate_ratio(measured: Mapping[str, Measurement], what: str, against: str = TUNED) -> float | None:
    """How many times as many records a second."""
    if what not in measured or against not in measured:
        return None
    return measured[what].rate / measured[against].rate


def processor_ratio(measured: Mapping[str, Measurement], what: str, against: str = TUNED) -> float | None:
    """How many times less processor time a record: 15 is a fifteenth."""
    own = measured[what].processor_microseconds if what in measured else None
    other = measured[against].processor_microseconds if against in measured else None
    return None if own is None or other is None or own == 0 else other / own


def targets(results: Results, hundred: str, thousand: str, ten: str, one: str) -> list[Target]:
    """The issue's targets; the four names are labels of the data."""
    rows = []
    for label, acks, readback, processor, share in ((hundred, 10, 6, 15, 0.6), (thousand, 5, 3, 10, 0.85)):
        measured = results.get(label, {})
        rows += [
            Target(label, "records a second, acks, against tuned MirrorMaker 2", rate_ratio(measured, ACKS), acks),
            Target(label, "records a second, readback, the same", rate_ratio(measured, READBACK), readback),
            Target(label, "less processor time a record, acks, the same", processor_ratio(measured, ACKS), processor),
            Target(
                label,
                "less processor time a record, readback, the same",
                processor_ratio(measured, READBACK),
                processor,
            ),
            Target(label, "share of the relay limit, acks", rate_ratio(measured, ACKS, RELAY_LIMIT), share),
        ]
    for label, wanted, most in ((ten, 8, 0.5), (one, 6, 1.2)):
        measured = results.get(label, {})
        for what in (ACKS, READBACK):
            name = f"records a second, {what.rpartition(' ')[2]}, against tuned MirrorMaker 2"
            rows.append(Target(label, name, rate_ratio(measured, what), wanted))
            used = measured[what].processor_microseconds if what in measured else None
            name = f"processor time a record, {what.rpartition(' ')[2]}"
            rows.append(Target(label, name, used, most, least=False, unit=" µs"))
    return rows

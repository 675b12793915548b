"""The one gate of a flow: its suites of expectations, the engine's own checks beneath them.

The DAGs, ``airmirror run-window``, ``airmirror verify`` and spark-submit by hand all judge here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from airmirror.flows.measure import measure_latency, measure_verification
from airmirror.flows.prepare import Opened
from airmirror.partitions import TopicPartition
from airmirror.quality.gate import Limits, validate
from airmirror.quality.rows import Row
from airmirror.quality.suites import Suite, check_suites, default_directory, load_suites
from airmirror.quality.verdict import Validation
from airmirror.tell import Tell, silent
from airmirror.windows.findings import GateRow
from airmirror.windows.judging import Gate, Verification
from airmirror.windows.window import verify_window

Hears = Callable[[Sequence[Row], Validation], None]


@dataclass(frozen=True)
class Expectations:
    """The expectations of a flow. ``suites`` None: only the engine's own checks judge, for the reason in ``alone``."""

    suites: tuple[Suite, ...] | None
    alone: str = ""

    def __str__(self) -> str:
        if self.suites is None:
            return f"the engine's own checks alone ({self.alone}): what is held stays held"
        return ", ".join(f"suite {suite.name} ({len(suite.expectations)} expectations)" for suite in self.suites)


def expectations_of(directory: Path | None, *, wanted: bool = True) -> Expectations:
    """The suites of a directory (None: the default one). Great Expectations checks them when there is something to judge.

    Where they are not ``wanted``, or where it is not installed, the engine's own checks judge alone. Raises BadExpectations.
    """
    if not wanted:
        return Expectations(None, "no expectations were wanted")
    if find_spec("great_expectations") is None:
        return Expectations(None, "Great Expectations is not installed")
    return Expectations(load_suites(directory or default_directory()))


def gate_of(
    opened: Opened,
    by: Expectations,
    *,
    window: str,
    waived: Mapping[TopicPartition, int] | None = None,
    hears: Hears = lambda rows, validation: None,
) -> Gate | None:
    """The gate of a flow: the objections of its suites; None: the engine's own checks judge alone. ``hears`` of each judgement,
    and the rows that it is of.

    The others as ``verify_flow`` has them. The gate raises BadExpectations.
    """
    flow, suites = opened.flow, by.suites
    if suites is None:
        return None
    records, seconds = flow.settings.window_max_lag_records, flow.settings.window_max_lag_seconds
    limits = Limits(records, None if seconds is None else float(seconds))

    def gate(findings: Sequence[GateRow]) -> Mapping[TopicPartition, str]:
        check_suites(suites)
        rows = [finding.row() for finding in findings]
        validation = validate(rows, suites, flow=flow.name, window=window, limits=limits)
        hears(rows, validation)
        objections = {TopicPartition(*key): "; ".join(reasons) for key, reasons in validation.failed.items()}
        last = {finding.key: finding.source_end - 1 for finding in findings}
        return {key: why for key, why in objections.items() if (waived or {}).get(key) != last[key]}

    return gate


def verify_flow(
    opened: Opened,
    by: Expectations,
    *,
    window: str,
    trusted: Container[str] = (),
    waived: Mapping[TopicPartition, int] | None = None,
    hears: Hears = lambda rows, validation: None,
    tell: Tell = silent,
) -> tuple[Verification, Validation | None]:
    """Judge what is not verified yet; advance what passes, hold what does not. No judgement: no suite was asked.

    ``trusted``: windows whose slots have read back; what others left is read from the target. ``waived``: the last offset of
    ranges that an operator lets pass whatever the suites say; the engine's own checks count all the same. ``hears``: as
    of the gate. Raises FlowBusy while a window of the flow is at work, BadExpectations, or a cluster's error.
    """
    validations: list[Validation] = []

    def noted(rows: Sequence[Row], validation: Validation) -> None:
        validations.append(validation)
        hears(rows, validation)

    gate = gate_of(opened, by, window=window, waived=waived, hears=noted)
    begun = time.monotonic()
    verification = verify_window(opened.flow, opened.ledger, gate, window=window, trusted=trusted, tell=tell)
    measure_verification(opened, verification, time.monotonic() - begun)
    if verification.verdicts:
        measure_latency(opened)
    return verification, validations[0] if validations else None

"""Judging a flow's windows by its suites of expectations, the engine's own checks beneath them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from airmirror.flows.measure import measure_judged, measure_latency
from airmirror.flows.prepare import Opened
from airmirror.quality.gate import Judgement, Limits, judge
from airmirror.quality.suites import Suite, check_suites
from airmirror.windows.findings import Finding
from airmirror.windows.window import Judged, judge_window
from airmirror.wire.requests import TopicPartition


def judge_flow(
    opened: Opened,
    suites: Sequence[Suite],
    *,
    window: str,
    trusted: Collection[str] = (),
    waived: Mapping[TopicPartition, int] | None = None,
    docs: Path | None = None,
    tell: Callable[[str], None] = lambda phase: None,
) -> tuple[Judged, Judgement | None]:
    """Judge what is not verified yet; advance what passes, hold what does not. No judgement: there was nothing to judge.

    ``trusted``: windows whose slots have read back; what others left is read from the target. ``waived``: the last offset of
    ranges that somebody lets pass whatever the suites say; the engine's own checks count all the same. Raises FlowBusy while a
    window of the flow is at work, BadExpectations, or a cluster's error.
    """
    flow = opened.flow
    judgements: list[Judgement] = []

    def gate(findings: Sequence[Finding]) -> Mapping[TopicPartition, str]:
        check_suites(suites)
        rows = [finding.row() for finding in findings]
        judgements.append(judge(rows, suites, flow=flow.name, window=window, limits=_limits(flow.settings), docs=docs))
        objections = {TopicPartition(*key): "; ".join(reasons) for key, reasons in judgements[-1].failed.items()}
        last = {finding.key: finding.source_end - 1 for finding in findings}
        return {key: why for key, why in objections.items() if (waived or {}).get(key) != last[key]}

    begun = time.monotonic()
    judged = judge_window(flow, opened.ledger, gate, window=window, trusted=trusted, tell=tell)
    measure_judged(opened, judged, time.monotonic() - begun)
    if judgements:
        measure_latency(opened)
    return judged, judgements[0] if judgements else None


def _limits(settings: Mapping[str, str]) -> Limits:
    records, seconds = settings.get("window.max.lag.records"), settings.get("window.max.lag.seconds")
    return Limits(int(records) if records else None, float(seconds) if seconds else None)

"""The parts of documents that several runbooks show: rules about names, an undo, the groups that it puts back, differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from airmirror.errors import named
from airmirror.report.document import Document, Finding, Level, Section
from airmirror.rows import rows_of
from airmirror.runbooks.moving import PutBack
from airmirror.topics.drift import Drift


def judged(level: Level, what: str, found: Sequence[str], fine: str, said: str = "", way_out: str = "") -> Finding:
    """A rule about names: *ok* with ``fine`` where there are none, else ``level`` with ``said`` and the first of them."""
    if not found:
        return Finding("ok", what, fine)
    return Finding(level, what, f"{said}: {named(found)}" if said else named(found), way_out)


def put_back_section(groups: Sequence[PutBack]) -> Section:
    """Positions of groups that an undo puts back, or has put back; not those that stand where they stood."""
    rows = rows_of(
        (each for each in groups if not each.is_back),
        "group=move.group topic=move.topic partition=move.partition stands_at=now goes_back_to",
        goes_back_to=lambda each: "no position" if each.move.before < 0 else each.move.before,
    )
    return Section("groups", rows, "Positions of groups", brief="*", empty="none was moved")


def shown_undo(
    runbook: str,
    flow: str,
    headline: str,
    reasons: Sequence[str],
    way_out: str,
    sections: Sequence[Section],
    groups: Sequence[PutBack],
) -> Document:
    """An undo as it would be done, or was; ``reasons``: why it can't be, and the way out then; ``groups``: what it puts back."""
    findings = [Finding("stop", "it can be undone", each, way_out) for each in reasons]
    if forgotten := [each.name for each in groups if each.is_forgotten]:
        said = "no position is left where these were moved to (expired, or deleted); what was read there is read again"
        findings.append(Finding("warn", "no record is read again", f"{said}: {named(forgotten)}"))
    if left := [each.name for each in groups if each.is_left]:
        said = "these have no position any more, and are not given the one before: it would break streams groups (KAFKA-20254)"
        findings.append(Finding("warn", "each group goes back to where it stood", f"{said}: {named(left)}"))
    return Document(
        kind=f"{runbook} undo",
        about=f"Undo of the {runbook} of {flow}",
        headline=headline,
        is_good=not reasons,
        asked={"flow": flow},
        sections=sections,
        findings=findings,
    )


def differences(drift: Sequence[Drift]) -> Section:
    """Configs and ACLs of the target that differ; of every plan."""
    return Section("differences", [asdict(each) for each in drift], "Differences", "Of topics, configs and ACLs.")

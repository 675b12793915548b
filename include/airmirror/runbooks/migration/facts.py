"""Everything that a migration's rules judge: both inventories, the flow's topics and positions, its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from airmirror.config import Flow
from airmirror.errors import named
from airmirror.report.document import Finding
from airmirror.runbooks.failover.groups import GroupPoint
from airmirror.runbooks.migration.inventory import Inventory
from airmirror.runbooks.migration.moving import Moving
from airmirror.topics.remote import TopicPlan
from airmirror.windows.plan import Planned


@dataclass(frozen=True)
class MigrationFacts:
    """A flow and its clusters at one time.

    ``planned``: what a window would do now; ``unverified``: mapping records that no gate has judged; ``held``: partitions that
    are held; ``foreign``: what was found of others in remote topics; ``returning``: topics of the source that came from the
    target, and are there already; ``copies``: records a second of the fastest of the last windows, 0: not known; ``takes_ms``:
    how long the migration may take; ``has_reverse``: the reverse flow is enabled.
    """

    flow: Flow
    source: Inventory
    target: Inventory
    topics: TopicPlan
    planned: Sequence[Planned]
    groups: Sequence[GroupPoint]
    moves: Sequence[Moving]
    unverified: int
    held: Sequence[str]
    foreign: Sequence[str]
    returning: Set[str]
    copies: float
    takes_ms: int
    has_reverse: bool

    @property
    def remote(self) -> Mapping[str, str]:
        """The topics that move, with their names on the target."""
        return self.topics.topics


def known(facts: MigrationFacts, rule: Finding, *needs: str) -> Finding:
    """The rule; a warning where it is *ok* only for want of what could not be read (``Inventory.unknown``) on either side."""
    lacking = [
        f"{what} of {each.alias}" for each in (facts.source, facts.target) for what in needs if what in each.unknown
    ]
    if rule.level != "ok" or not lacking:
        return rule
    return Finding(
        "warn", rule.what, f"not known, for want of {named(lacking)}", "grant this user what the rule below names"
    )

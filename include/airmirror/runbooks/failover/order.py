"""The order of a failover, and its two ways: for whoever only names them, nothing else is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from airmirror.runbooks.runbook import Order, option

Way = Literal["planned", "disaster"]


@dataclass(frozen=True, kw_only=True)
class FailoverOrder(Order):
    """Who fails over, how and why."""

    way: Way = option(
        "planned: the source answers, nothing is lost. disaster: what the target alone can prove.",
        "planned",
        is_required=True,
    )
    wait: float = option("planned: how many seconds to wait until the source is quiet.", 300.0, is_asked=False)
    inexact: bool = option(
        "planned: also where groups do not resume at the very next record.", False, "Inexact groups too"
    )
    anyway: bool = option("disaster: although the source answers.", False)

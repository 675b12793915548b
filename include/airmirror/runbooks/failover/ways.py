"""The two ways of a failover, for whoever only names them: nothing else is loaded."""

from __future__ import annotations

from typing import Literal

Way = Literal["planned", "disaster"]

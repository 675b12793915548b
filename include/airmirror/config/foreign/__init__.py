"""MirrorMaker 2's configuration as its other homes have it, Strimzi and Connect, translated into settings of a flow."""

from __future__ import annotations

from airmirror.config.foreign.translation import Translation, is_foreign, translate

__all__ = ["Translation", "is_foreign", "translate"]

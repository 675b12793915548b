"""Configuration: MirrorMaker 2's properties file as frozen dataclasses, and every key, default and doc in one table."""

from __future__ import annotations

from airmirror.config.errors import ConfigurationError, FlowNotEnabled, Problem, UnknownFlow
from airmirror.config.explain import explain, resolve
from airmirror.config.load import load, parse
from airmirror.config.model import Cluster, Configuration, Flow, Window
from airmirror.config.values import masked

__all__ = [
    "Cluster",
    "Configuration",
    "ConfigurationError",
    "Flow",
    "FlowNotEnabled",
    "Problem",
    "UnknownFlow",
    "Window",
    "explain",
    "load",
    "masked",
    "parse",
    "resolve",
]

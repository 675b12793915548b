"""Configuration: MirrorMaker 2's properties file as frozen dataclasses, and every key, default and doc in one table."""

from airmirror.config.errors import ConfigurationError, ConnectionNeeded, Problem
from airmirror.config.explain import connections_of, explain, resolve
from airmirror.config.load import load, parse, survey, translated
from airmirror.config.model import Cluster, Comparison, Configuration, Flow, MoveGroup, Window
from airmirror.config.settings import Settings

__all__ = [
    "Cluster",
    "Comparison",
    "Configuration",
    "ConfigurationError",
    "ConnectionNeeded",
    "Flow",
    "MoveGroup",
    "Problem",
    "Settings",
    "Window",
    "connections_of",
    "explain",
    "load",
    "parse",
    "resolve",
    "survey",
    "translated",
]

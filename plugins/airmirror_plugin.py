"""Registers Airmirror's web app where the package lies on Python's path uninstalled; installed, its entry point does.

Nothing else is ever in this folder: Airflow runs every file here as a top-level module.
"""

from importlib.metadata import entry_points

if "airmirror" not in {point.name for point in entry_points(group="airflow.plugins")}:
    from airmirror.web.plugin import AirmirrorPlugin

    __all__ = ["AirmirrorPlugin"]

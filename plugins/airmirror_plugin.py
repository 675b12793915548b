"""Registers Airmirror's web app with Airflow. Nothing else is ever in this folder: every file here runs as a top-level module."""

from airmirror.web.plugin import AirmirrorPlugin

__all__ = ["AirmirrorPlugin"]

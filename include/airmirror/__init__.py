"""Airmirror: Kafka topics replicated between clusters in windows that are proven before they count."""

from importlib import metadata

try:
    __version__ = metadata.version("airmirror")
except metadata.PackageNotFoundError:  # Spark's executors are sent the modules alone
    __version__ = "0+unknown"

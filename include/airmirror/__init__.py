"""Airmirror: Kafka topics replicated between clusters in windows that are proven before they count."""

__version__ = "0.1.0"

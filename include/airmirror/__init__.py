"""Airmirror: Kafka topics replicated between clusters in windows that are proven before they count."""

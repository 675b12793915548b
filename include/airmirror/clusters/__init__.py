"""Connections to clusters: admin, consumer and producer (confluent-kafka) and the hot path's sockets."""

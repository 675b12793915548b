"""Whom to trust and how to log in: Kafka's security settings, stores, TLS and tokens, understood once for both clients."""

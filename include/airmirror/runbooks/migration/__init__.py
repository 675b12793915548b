"""Migrating a cluster: what is on it, what must move together, and what stands in the way."""

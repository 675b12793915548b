"""Failing over to the target of a flow: what it would mean now."""

"""Rehearsing a failover: everything that one relies on is proven, and both clusters are only read."""

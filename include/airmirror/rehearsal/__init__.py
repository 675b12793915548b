"""Rehearsing a failover: everything that one relies on is proven, and nothing of production is touched."""

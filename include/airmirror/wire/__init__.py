"""Bytes only, no I/O: record batches, MirrorMaker 2's records, our records, requests of the hot path."""

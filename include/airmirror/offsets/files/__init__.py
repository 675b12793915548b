"""Positions that no consumer group keeps: the files that other tools keep theirs in, read and written again."""

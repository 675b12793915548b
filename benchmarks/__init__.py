"""Airmirror measured side by side with MirrorMaker 2: ``python -m benchmarks``."""

"""Failing back: what diverged while a flow was closed, and the rescue of what never crossed."""

"""Failing back: what diverged while a flow was frozen, and the rescue of what was never replicated."""

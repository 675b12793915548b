"""The listener of work that takes time: it hears what goes on now, a phrase at a time."""

from collections.abc import Callable

Tell = Callable[[str], None]


def silent(text: str) -> None:
    """Hear what goes on, and tell nobody."""

"""A line for each step with the time that it took, on a terminal, in a pipe and in CI; or what it is now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta

from rich.console import Console
from rich.text import Text

from airmirror.cli.tables import BAD, GOOD


def steps(console: Console) -> Callable[[str], AbstractContextManager[None]]:
    """Show a step: on a terminal while it is done, then everywhere as a line, also of one that failed."""

    @contextmanager
    def step(name: str) -> Iterator[None]:
        begun, mark = time.monotonic(), Text("✗", BAD)
        try:
            with console.status(name):
                yield
            mark = Text("✓", GOOD)
        finally:
            taken = timedelta(seconds=round(time.monotonic() - begun))
            console.print(Text.assemble(mark, f" {name:<64} {taken}"), soft_wrap=True)

    return step


@contextmanager
def telling(console: Console, first: str = "") -> Iterator[Callable[[str], None]]:
    """A line on a terminal for what goes on now, and what changes it. Names in it are data, and no markup."""
    with console.status(Text(first)) as status:
        yield lambda phase: status.update(Text(phase))

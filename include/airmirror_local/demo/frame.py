"""The frame of a demo: a directory of its own, two clusters, what was seen, and whether it is proven."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.text import Text

from airmirror.cli.tables import BAD, GOOD, line, print_all
from airmirror.errors import AirmirrorError
from airmirror.local import LOCAL
from airmirror_local.brokers import Broker, start_broker

Step = Callable[[str], AbstractContextManager[object]]
Course = TypeVar("Course")


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


def prove(
    console: Console,
    run: Callable[[Path], Course],
    shown: Callable[[Course], Sequence[RenderableType]],
    doubts: Callable[[Course], Iterable[str]],
) -> int:
    """Run a demo in a directory that is removed after it; the exit status: 0 when nothing is in doubt.

    ``run``: the demo, which leaves nothing running; ``shown``: of its course; ``doubts``: the reasons why nothing is proven.
    """
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="demo-", dir=LOCAL))
    try:
        course = run(directory)
    except (AirmirrorError, TimeoutError) as error:
        print_all(console, line("failed", error))
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    found = list(doubts(course))
    print_all(console, *shown(course), *(line("not proven", doubt) for doubt in found))
    return 1 if found else 0


def start_clusters(stack: ExitStack, step: Step, directory: Path) -> tuple[Broker, Broker]:
    """East and west, a broker each, which are killed when the stack is closed."""
    brokers = []
    for name in ("east", "west"):
        with step(f"starting cluster {name}"):
            brokers.append(start_broker(directory, name))
        stack.callback(brokers[-1].kill)
    return brokers[0], brokers[1]

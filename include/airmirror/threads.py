"""Work in a thread of its own, for who can't wait for ever."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

Done = TypeVar("Done")


def begin(work: Callable[[], Done]) -> Future[Done]:
    """Do it in a thread that holds up nothing, the end of the process neither."""
    answer: Future[Done] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    return answer

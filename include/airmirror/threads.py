"""Work in a thread of its own: for who can't wait for ever, and alongside a block of work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from threading import Event, Thread
from typing import Self, TypeVar

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


class BackgroundThread(ABC):
    """A context manager: ``_run`` works in a thread of its own until the end of the block sets ``_ended``, and is waited for."""

    def __init__(self, name: str) -> None:
        self._ended = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Work until ``_ended`` is set."""

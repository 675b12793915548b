"""A thread alongside a block of work: begun and ended with it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class BackgroundThread(ABC):
    """A context manager: ``_run`` works in a thread of its own until the end of the block sets ``_ended``, and is waited for."""

    def __init__(self, name: str) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Work until ``_ended`` is set."""

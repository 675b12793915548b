"""The watch that ends a window while its DAG is paused."""

from __future__ import annotations

import threading

from airmirror.on_airflow.pausing import PauseWatch


def test_it_stops_again_and_again_until_the_work_has_ended() -> None:
    answers = iter([False, OSError("the API server is away"), True, True, True])
    stopped: list[int] = []
    enough = threading.Event()

    def is_paused() -> bool:
        answer = next(answers, True)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop() -> None:
        stopped.append(1)
        if len(stopped) == 3:
            enough.set()
        if len(stopped) == 1:
            raise OSError("Spark is away")

    with PauseWatch(is_paused, stop, every=0.01) as watch:
        assert enough.wait(10)
    assert watch.paused


def test_nothing_is_stopped_while_the_dag_is_on() -> None:
    asked = threading.Event()
    stopped: list[int] = []

    def is_paused() -> bool:
        asked.set()
        return False

    with PauseWatch(is_paused, lambda: stopped.append(1), every=0.01) as watch:
        assert asked.wait(10)
    assert not watch.paused and stopped == []

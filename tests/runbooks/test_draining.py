"""What a drain makes of the errors of its own last window: what passes by itself, and what does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.runbooks import draining
from airmirror.runbooks.draining import DrainStopped, NotDrained
from airmirror.slot.errors import SlotFenced


@pytest.mark.parametrize(
    ("error", "is_final"),
    [
        pytest.param(SlotFenced("a->b", "last-1", "scheduled-2"), False, id="another window has overtaken it"),
        pytest.param(SlotFenced("a->b", "last-1", ""), False, id="its lease was released"),
        pytest.param(SimpleNamespace(transient=False), True, id="a final one"),
    ],
)
def test_a_drain_whose_window_was_overtaken_can_be_done_again(
    error: AirmirrorError, is_final: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = SimpleNamespace(name="a->b", window=None, tasks_max=1)
    opened: Any = SimpleNamespace(flow=flow, ledger=None)
    prepared = SimpleNamespace(opened=opened, topics={}, is_refused_for_good=False)
    ended = SimpleNamespace(rows=[SimpleNamespace(key=TopicPartition("orders", 0), error=error)])
    clusters = {"prepare": prepared, "run_window": ended, "measure_window": None, "_refused": []}
    for name, answer in clusters.items():
        monkeypatch.setattr(draining, name, lambda *_, answer=answer: answer)
    with pytest.raises(NotDrained) as caught:
        draining._last_window(opened, None, lambda _: None)
    assert isinstance(caught.value, DrainStopped) == is_final == (not caught.value.transient)

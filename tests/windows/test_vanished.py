"""A slot resumes trying where the names of a cluster that it has reached have no address for a while."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Any

import pytest

from airmirror.clusters.protocol.routes import Routes
from airmirror.slot import attempts
from airmirror.slot.attempts import run_slot
from airmirror.slot.contract import Outcome
from support.intakes import intake


@pytest.mark.parametrize("is_reached", [True, False])
def test_a_slot_waits_for_names_that_it_has_known(is_reached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it has never reached the cluster, the name is wrong where the slot runs: that does not pass."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    tried: list[str] = []

    def attempt(*, source: Routes, **_: Any) -> bool:
        tried.append(source.alias)
        if len(tried) == 1 and is_reached:
            source.cluster_id = "answered"
        if len(tried) < 3:
            source.refresh([])
        return True

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(attempts, "_attempt", attempt)
    monkeypatch.setattr(attempts, "LEAST_PAUSE", 0.0)
    (result,) = run_slot(replace(intake(10)[0].context.slot, max_ms=60_000))
    assert len(tried) == (3 if is_reached else 1)
    assert (result.outcome is Outcome.FAILED) is not is_reached

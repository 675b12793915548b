"""Short waits: what procedures wait for in production is looked at often, and given up soon, in tests."""

from __future__ import annotations

from functools import partial

import pytest

from airmirror.clusters.admin.client import Admin
from airmirror.config import Cluster
from airmirror.runbooks import stillness
from airmirror.runbooks.failover import plan
from airmirror.runbooks.takeover import copies
from airmirror_local.ports import answers

BUSY = 4  # times as long as promised: this machine may be busy with other tests


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source where nobody listens is given up after half a second; whether producers write is looked at every 50 ms; a
    MirrorMaker 2 of which nobody was seen for half a second is stopped."""
    connect, patience = plan.connect, plan.REACH_SECONDS

    def patient_where_somebody_listens(cluster: Cluster) -> Admin:
        is_there = any(answers(int(server.rpartition(":")[2])) for server in cluster.bootstrap_servers)
        monkeypatch.setattr(plan, "REACH_SECONDS", patience if is_there else 0.5)
        return connect(cluster)

    monkeypatch.setattr(plan, "connect", patient_where_somebody_listens)
    monkeypatch.setattr(stillness, "SAMPLE_SECONDS", 0.05)
    monkeypatch.setattr(copies, "await_stopped", partial(copies.await_stopped, still=0.5))

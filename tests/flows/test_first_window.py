"""A flow's first window looks for a MirrorMaker 2 before anything is written; a flow that has begun does not."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.clusters.protocol.workers import Worker
from airmirror.config import parse
from airmirror.flows import prepare
from airmirror.topics.remote import TopicPlan
from airmirror.windows import mirrormaker
from airmirror.windows.mirrormaker import MirrorMakerBeside
from airmirror.wire.owners import Owners

FILE = "clusters = east, west\neast.bootstrap.servers = x:1\nwest.bootstrap.servers = y:1\neast->west.enabled = true\n"


class Written(Exception):
    """The internal topics were about to be made."""


@pytest.mark.parametrize(
    ("own", "mappings", "group", "raised"),
    [
        (None, {}, "east-mm2", MirrorMakerBeside),
        (None, {}, "north-mm2", Written),
        (object(), {}, "east-mm2", Written),
        (None, {("orders", 0): object()}, "east-mm2", Written),
    ],
)
def test_only_a_first_window_is_refused(
    own: object, mappings: dict[Any, Any], group: str, raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(*_: object) -> None:
        raise Written

    fake: dict[str, Any] = {
        "guard": lambda _: SimpleNamespace(own=own),
        "catch_up_soon": lambda _: None,
        "as_decided": lambda flow, _: flow,
        "plan_topics": lambda *_: TopicPlan({"orders": "east.orders"}, (), (), (), ()),
        "_hidden": lambda *_: [],
        "ensure_internal_topics": written,
    }
    for name, function in fake.items():
        monkeypatch.setattr(prepare, name, function)
    monkeypatch.setattr(mirrormaker, "Routes", lambda *_: nullcontext())
    monkeypatch.setattr(mirrormaker, "workers", lambda _: [Worker(group, "10.0.0.7", "", None)])
    monkeypatch.setattr(mirrormaker, "open_transactions", lambda _: [])
    configuration = parse(FILE, "file")
    ledger: Any = SimpleNamespace(owners=Owners, last_mappings=lambda: mappings)
    with pytest.raises(raised) as caught:
        prepare.prepare(prepare.Opened(configuration, configuration.flow(), ledger))
    if raised is MirrorMakerBeside:
        assert "airmirror takeover run --reason '…' --yes --flow 'east->west'" in str(
            caught.value
        ) and "10.0.0.7" in str(caught.value)

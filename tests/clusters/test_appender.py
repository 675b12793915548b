"""Single records, appended by a producer that is shared until something goes wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from airmirror.clusters.admin import appender
from airmirror.clusters.admin.appender import Appender, AppendFailed
from airmirror.clusters.admin.client import connect
from airmirror.config import Cluster
from airmirror_local.brokers import Broker
from support.topics import create_topic, read_all


def test_records_are_appended_by_one_producer(
    east: Broker, topic: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[Cluster]()
    real = appender.producer
    monkeypatch.setattr(appender, "producer", lambda cluster, settings: made.append(cluster) or real(cluster, settings))
    cluster = Cluster("east", (east.bootstrap,), {"client.id": "appends"})
    names = [create_topic(east, topic(each)) for each in ("one", "two")]
    assert set(names) <= set(connect(cluster).topic_names()), "an AdminClient of these settings is another client"
    for name in names * 2:
        with Appender(cluster, name) as opened:
            opened.append([(b"k", b"v")])
    assert [[each.key for each in read_all(east, name)[0]] for name in names] == [[b"k", b"k"]] * 2
    assert len(made) == 1
    with monkeypatch.context() as soon, Appender(cluster, topic("missing"), 7) as opened:
        soon.setattr(appender, "DELIVERY_SECONDS", 1)
        with pytest.raises(AppendFailed, match="missing"):
            opened.append([(b"k", b"v")])
    with Appender(cluster, names[0]) as opened:
        assert opened.append([(b"k", b"v"), (b"k", None)]) == [2, 3]
    assert len(made) == 2, "none is used again that has failed"


def test_who_waits_for_a_record_waits_for_none_of_others(
    east: Broker, topic: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them writes where no leader is yet: the others' records are taken meanwhile, and say so."""
    cluster = Cluster("east", (east.bootstrap,), {"client.id": "waits"})
    name, missing = create_topic(east, topic("there")), topic("missing")
    with Appender(cluster, name) as opened:
        opened.append([(b"0", b"v")])  # their producer, which takes a while to know its cluster
    monkeypatch.setattr(appender, "DELIVERY_SECONDS", 4)
    with ThreadPoolExecutor(1) as pool, Appender(cluster, name) as opened, Appender(cluster, missing) as other:
        failed = pool.submit(other.append, [(b"k", b"v")])
        assert opened.append([(b"1", b"v"), (b"2", b"v"), (b"3", b"v")]) == [1, 2, 3]
        assert not failed.done(), "it has not waited until the other gave up"
        with pytest.raises(AppendFailed, match=missing):
            failed.result()

"""Storage of nodes is a copy of what Kafka has formatted once, with ids of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airmirror_local.brokers import java
from airmirror_local.jars import KAFKA_VERSION
from airmirror_local.processes import ProcessFailed
from airmirror_local.storage import META, format_storage, new_id


def meta(data: Path) -> dict[str, str]:
    lines = (data / META).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_nodes_have_ids_of_their_own_and_one_format_that_is_made_once(tmp_path: Path) -> None:
    def made(node: int) -> Path:
        data = tmp_path / f"node-{node}"
        format_storage(data, node, clusters[node], java, KAFKA_VERSION, {}, tmp_path)
        return data

    clusters = {node: new_id() for node in (1, 2)}
    with ThreadPoolExecutor() as threads:  # both find no template
        first, second = threads.map(made, (1, 2))
    found = [meta(first), meta(second)]
    assert [(each["node.id"], each["cluster.id"]) for each in found] == [("1", clusters[1]), ("2", clusters[2])]
    assert found[0]["directory.id"] != found[1]["directory.id"]
    checkpoints = {(data / "bootstrap.checkpoint").read_bytes() for data in (first, second)}
    assert len(checkpoints) == 1
    assert [each.name for each in (tmp_path / "storage").iterdir()] == [KAFKA_VERSION]

    def none_left() -> list[str]:
        raise AssertionError("formatted again")

    format_storage(tmp_path / "again", 3, new_id(), none_left, KAFKA_VERSION, {}, tmp_path)
    with pytest.raises(AssertionError, match="formatted again"):  # other features have a template of their own
        format_storage(tmp_path / "older", 3, new_id(), none_left, KAFKA_VERSION, {"transaction.version": 0}, tmp_path)


def test_a_feature_that_kafka_does_not_know_shows_why(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"(?s)could not be formatted with no\.such=1\..*no\.such"):
        format_storage(tmp_path / "a", 1, new_id(), java, KAFKA_VERSION, {"no.such": 1}, tmp_path)
    assert not list((tmp_path / "storage").iterdir())

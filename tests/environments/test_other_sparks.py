"""A window, a kill and a comparison over Spark Connect on other versions of Spark; and executors of another Python."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from airmirror.naming.internal import mapping_topic
from airmirror.wire.mappings import Lease
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Proxy
from airmirror_local.spark_connect import TOKEN, start_connect_server
from environments.test_scenarios import killed_in_mid_window
from support import ROOT
from support.environments import Environment, connect, submit
from support.flows import mirror
from support.hostile import numbered
from support.installed import HERE, python_of
from support.sparks import ELSEWHERE, OTHERS, OtherSpark, installed, spark_home
from support.topics import produce, read_all

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_a_kill_and_a_comparison_on_another_spark(
    other: OtherSpark, east: Broker, west: Broker, west_proxy: Proxy, tmp_path: Path
) -> None:
    python = installed(other)
    client = str(other.of_client)
    server = start_connect_server(tmp_path / "spark", home=spark_home(python), python=str(python))
    try:
        environment = connect(server, "other", client)
        flow = killed_in_mid_window(environment, east, west, west_proxy, tmp_path)
        asked = ["--source", east.bootstrap, "--target", west.bootstrap, "--topics", flow.topic]
        renamed = ["--rename", f"{flow.flow.source.alias}.{{topic}}", "--spark", server.address, "--json"]
        compared = subprocess.run(
            [client, "-m", "airmirror.cli.main", "compare", *asked, *renamed],
            env=os.environ | {TOKEN: server.token, "PYTHONPATH": str(ROOT / "include")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert compared.returncode == 0, compared.stdout + compared.stderr
        found = json.loads(compared.stdout)
        assert found["is_equal"] and [each["records"]["equal"] for each in found["partitions"]] == [4000]
    finally:
        server.process.kill()


@pytest.fixture(params=["connect", "submit"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Environment]:
    """Where executors run ``ELSEWHERE``, another Python than this one."""
    python = str(python_of(ELSEWHERE))
    if request.param == "submit":
        yield submit("local[2,4]", "submit", python)
        return
    server = start_connect_server(tmp_path / "spark", python=python)
    try:
        yield connect(server)
    finally:
        server.process.kill()


def test_executors_of_another_python_are_named_before_the_window(
    elsewhere: Environment, east: Broker, west: Broker, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    flow = mirror(east, west, tmp_path, settings={"tasks.max": "1"}, ledger_url=url)
    produce(east, flow.topic, numbered(10))
    with elsewhere.started(flow, url, "elsewhere", tmp_path) as process:
        status = process.handle.wait()
    said = process.log.read_text()
    assert status in (1, 2), said  # a person is needed: it is not tried again
    words = " ".join(said.split())
    assert f"executors run Python {ELSEWHERE}, and Airmirror runs in Python {HERE}" in words
    assert "PYSPARK_PYTHON" in words and "spark.pyspark.python" in words
    (written,) = read_all(west, mapping_topic(flow.flow.source.alias)).values()
    assert Lease.kind not in {(record.key or b"?")[0] for record in written}

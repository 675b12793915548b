"""The place of a session, and who can name it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

import pytest
from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from pyspark.errors import PySparkException
from pyspark.sql.connect.client.core import DefaultChannelBuilder

from airmirror.errors import AirmirrorError
from airmirror.on_spark import sessions
from airmirror.on_spark.execute import LibraryAltered, OtherPython, SparkJobFailed, execute
from airmirror.on_spark.library import ALTERED
from airmirror.on_spark.sessions import SparkRefused, connect, in_session, session_id
from airmirror.on_spark.tasks import MissingPackage
from airmirror.slot.contract import Slot
from support.flows import a_flow

MISMATCH = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark"
SECRET = "to/k=n;1 %2F"


@pytest.mark.parametrize("login", ["", "me"])
@pytest.mark.parametrize("password", ["", SECRET])
@pytest.mark.parametrize("extra", [{}, {"use_ssl": "true"}, {"use_ssl": True}])
@pytest.mark.parametrize("host", ["spark.example.org", "sc://spark.example.org"])
def test_every_kind_of_connection(
    host: str, extra: dict[str, object], password: str, login: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From Airflow's own hook to PySpark's own channel."""
    connection = {
        "conn_type": "spark_connect",
        "host": host,
        "port": 15002,
        "login": login,
        "password": password,
        "extra": extra,
    }
    monkeypatch.setenv("AIRFLOW_CONN_SC", json.dumps(connection))
    monkeypatch.delenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", raising=False)
    session = uuid4()
    channel = DefaultChannelBuilder(in_session(SparkConnectHook("sc").get_connection_url(), session))
    assert (channel.endpoint, channel.session_id) == ("spark.example.org:15002", str(session))
    assert (channel.userId or "", channel.token or "") == (login, password)
    assert (channel.use_ssl, channel.secure) == (bool(extra), bool(extra or password))


@pytest.mark.parametrize("url", ["sc://localhost:1", "sc://localhost:1/", "sc://localhost:1/;"])
def test_an_address_alone(url: str) -> None:
    assert DefaultChannelBuilder(in_session(url, UUID(int=7))).endpoint == "localhost:1"


def test_a_url_that_makes_no_sense_is_told_without_its_token() -> None:
    with pytest.raises(SparkRefused) as caught:
        connect(f"http://localhost:1/;token={SECRET}", a_flow("east"))
    assert not caught.value.transient and "INVALID_CONNECT_URL" in str(caught.value) and "to/k" not in str(caught.value)
    with pytest.raises(SparkRefused) as caught:
        connect("sc://localhost:1/;token=planted=1", a_flow("east"))
    assert "planted" not in str(caught.value)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(sessions.SECRET_VARIABLE, raising=False)
    sessions._secret.cache_clear()
    yield tmp_path / "airmirror" / sessions.SECRET_FILE
    sessions._secret.cache_clear()


def test_nobody_else_can_name_a_session(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = a_flow("east")
    ids = {session_id(flow, "library", generation) for generation in range(5)}
    assert len(ids) == 5 and all(each.version == 4 for each in ids)
    assert uuid5(NAMESPACE_URL, "airmirror|east->west|library|0") not in ids
    assert own.stat().st_mode & 0o777 == 0o600 and own.read_bytes() not in b"\0" * 32
    sessions._secret.cache_clear()  # another process of the user
    assert session_id(flow, "library", 0) in ids
    own.write_bytes(b"of another deployment")
    sessions._secret.cache_clear()
    assert session_id(flow, "library", 0) not in ids
    monkeypatch.setenv(sessions.SECRET_VARIABLE, "one")
    one = session_id(flow, "library", 0)
    monkeypatch.setenv(sessions.SECRET_VARIABLE, "two")
    assert one not in ids and session_id(flow, "library", 0) not in {one, *ids}


def test_equal_names_of_flows_between_other_clusters_are_other_sessions(own: Path) -> None:
    assert session_id(a_flow("east"), "library", 0) != session_id(a_flow("east", "staging:9092"), "library", 0)


def failure(said: str) -> AirmirrorError:
    """The error of a window whose job Spark ends with these words."""
    spark, slot = Mock(), SimpleNamespace(flow=a_flow("a"), window="w", partitions=(), longest_ms=0)
    spark.interruptTag.side_effect = PySparkException(said)
    with pytest.raises(AirmirrorError) as caught:
        execute(spark, [cast(Slot, slot)])
    return caught.value


def test_what_spark_says_becomes_what_a_person_needs() -> None:
    for said in (
        "ModuleNotFoundError: No module named 'pyarrow'",
        "[PACKAGE_NOT_INSTALLED] PyArrow >= 15.0.0 must be installed; however, it was not found.",
    ):
        missing = failure(f"An exception was thrown\nTraceback\n{said}")
        assert isinstance(missing, MissingPackage) and missing.package == "pyarrow" and not missing.transient
    python = failure(f"Job aborted\n{MISMATCH}")
    assert isinstance(python, OtherPython) and python.executors == "3.9" and not python.transient
    changed = failure("[NO_ACTIVE_SESSION] No active Spark session found.")
    assert isinstance(changed, SparkJobFailed) and changed.transient
    assert "was restarted" in str(changed) and "NO_ACTIVE_SESSION" in str(changed)
    altered = failure(f"Job aborted\nImportError: {ALTERED}: x, not y")
    assert isinstance(altered, LibraryAltered) and not altered.transient
    other = failure("Job 3 cancelled")
    assert isinstance(other, SparkJobFailed) and other.reason == "Job 3 cancelled"

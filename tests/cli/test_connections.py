"""Commands log in with what Airflow's connections hold, or say at once that they need it given otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror_local.brokers import Broker
from support.topics import create_topic

AIRMIRROR = (sys.executable, "-m", "airmirror.cli.main")


def configuration(directory: Path, target: str, topic: str, conn_id: str = "kafka-east") -> Path:
    file = directory / "mirror.properties"
    alias = f"c{uuid.uuid4().hex[:8]}"
    file.write_text(
        f"clusters = {alias}, west\n{alias}.airflow.conn.id = {conn_id}\nwest.bootstrap.servers = {target}\n"
        f"{alias}->west.enabled = true\n{alias}->west.topics = {topic}\nreplication.factor = 1\n"
    )
    return file


def environment(home: Path, **more: str) -> dict[str, str]:
    """That of a machine where no Airflow is set up."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "_AIRFLOW"))}
    return kept | {"HOME": str(home)} | more


def airmirror(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*AIRMIRROR, *arguments], capture_output=True, text=True, env=env, timeout=400)


def test_a_connection_in_the_environment(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 2)
    file, home = configuration(tmp_path, west.bootstrap, topic), tmp_path / "home"
    home.mkdir()
    held = json.dumps({"conn_type": "airmirror_kafka", "extra": {"bootstrap.servers": east.bootstrap}})
    options = ("--config", str(file), "--ledger", f"sqlite:///{tmp_path}/there/ledger.db", "--json")
    planned = airmirror("plan", *options, env=environment(home, **{"AIRFLOW_CONN_KAFKA-EAST": held}))
    assert planned.returncode == 0, planned.stderr
    assert next(iter(json.loads(planned.stdout)["create"].values())) == 2
    assert not planned.stderr, "a library has talked in between"
    assert not list(home.iterdir()) and not (tmp_path / "there").exists(), (
        "a command that only shows has made something"
    )


def test_what_a_command_needs_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = configuration(tmp_path, "localhost:1", ".*")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AIRFLOW_HOME", "_AIRFLOW_PROCESS_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("_AIRFLOW__AS_LIBRARY", "1")  # put back after the test, whoever sets it
    failed = CliRunner().invoke(app, ["status", "--config", str(file), "--ledger", f"sqlite:///{tmp_path}/ledger.db"])
    assert failed.exit_code == 2
    for word in ("kafka-east", "AIRFLOW_HOME", "AIRFLOW_CONN_KAFKA-EAST", "--secrets"):
        assert word in failed.stderr


def test_how_a_spark_connection_runs_windows_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mirror.properties"
    lines = ["clusters = a, b, c", *(f"{alias}.bootstrap.servers = {alias}:1" for alias in "abc")]
    lines += [
        "a->b.enabled = true",
        "a->b.spark.conn.id = over_connect",
        "b->c.enabled = true",
        "b->c.spark.conn.id = by_submit",
    ]
    lines += ["c->a.enabled = true", "c->a.spark.conn.id = elsewhere"]
    file.write_text("\n".join(lines))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AIRFLOW_HOME", "_AIRFLOW_PROCESS_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("_AIRFLOW__AS_LIBRARY", "1")
    for name, kind in {"over_connect": "spark_connect", "by_submit": "yarn"}.items():
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps({"conn_type": kind, "host": "h", "port": 1}))
    shown = CliRunner().invoke(app, ["config", "--config", str(file)])
    assert shown.exit_code == 0, shown.output
    for said in (
        "over_connect  # line 6 (Spark Connect)",
        "by_submit  # line 8 (spark-submit, type yarn)",
        "elsewhere  # line 10 (its type is Airflow's to know",
    ):
        assert said in shown.stdout
    monkeypatch.setenv("AIRFLOW_CONN_BY_SUBMIT", json.dumps({"conn_type": "http", "host": "h"}))
    wrong = CliRunner().invoke(app, ["config", "--config", str(file)])
    assert wrong.exit_code == 2 and "line 8: " in wrong.stderr and "its type is 'http'" in wrong.stderr, wrong.output


def test_secrets_stand_for_the_connection(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 1)
    file, secrets = configuration(tmp_path, west.bootstrap, topic), tmp_path / "secrets.properties"
    alias = file.read_text().split()[2].rstrip(",")
    secrets.write_text(
        f"{alias}.bootstrap.servers = {east.bootstrap}\n{alias}.client.id = a${{env:HOME}}b\n"
        f"config.providers = env\nconfig.providers.env.class = EnvVarConfigProvider\n"
        f"AIRMIRROR_LEDGER = sqlite:///{tmp_path}/ledger.db\n"
    )
    options = ("--config", str(file), "--secrets", str(secrets))
    planned = CliRunner().invoke(app, ["plan", *options, "--json"])
    assert planned.exit_code == 0, planned.output
    assert list(json.loads(planned.stdout)["create"]) == [f"{alias}.{topic}"]
    values = json.loads(CliRunner().invoke(app, ["config", *options, "--json"]).stdout)[f"{alias}->west"]
    (client_id,) = (row["value"] for row in values if row["key"] == "source.client.id")
    assert client_id == "a${env:HOME}b", "a value from elsewhere is no reference to a config provider"


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_connection_in_the_database(east: Broker, west: Broker, tmp_path: Path) -> None:
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", 1)
    file = configuration(tmp_path, west.bootstrap, topic, "kafka_east")
    env = environment(tmp_path, AIRFLOW_HOME=str(tmp_path / "airflow"), AIRFLOW__CORE__LOAD_EXAMPLES="false")
    extra = json.dumps({"bootstrap.servers": east.bootstrap})
    add = ("connections", "add", "kafka_east", "--conn-type", "kafka", "--conn-extra", extra)
    for arguments in (("db", "migrate"), add):
        done = subprocess.run([sys.executable, "-m", "airflow", *arguments], env=env, capture_output=True, timeout=400)
        assert done.returncode == 0, done.stderr.decode()
    options = ("--config", str(file), "--ledger", f"sqlite:///{tmp_path}/ledger.db", "--json")
    planned = airmirror("plan", *options, env=env)
    assert planned.returncode == 0, planned.stderr
    assert next(iter(json.loads(planned.stdout)["create"].values())) == 1

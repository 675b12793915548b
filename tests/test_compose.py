"""docker-compose.yaml and Dockerfile agree with the Compose specification, with each other and with the code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet

from airmirror.config import load, resolve
from airmirror.config.keys import KEYS, Use
from airmirror.web.alerts import MOST_BYTES
from airmirror_local import jars

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = ROOT / "docker-compose.yaml"
TEXT = COMPOSE.read_text()
CONTENT: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = CONTENT["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
CODE = "\n".join(path.read_text() for path in (ROOT / "include" / "airmirror").rglob("*.py"))
CHECK_SECONDS = 0.2  # of a core, at the most: the engine starts a process in the container, which asks the service


def airflow_services() -> list[str]:
    return [name for name in SERVICES if name.startswith("airflow-")]


def mounts(service: str) -> Iterator[tuple[str, str]]:
    """(source, target) of a service's volumes."""
    for volume in SERVICES[service].get("volumes", ()):
        source, target = volume.split(":")[:2]
        yield source, target


def test_the_specification_allows_it() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_specification_is_not_toothless(tmp_path: Path) -> None:
    wrong = tmp_path / "docker-compose.yaml"
    wrong.write_text(TEXT.replace("healthcheck:", "healthchek:"))
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(wrong)]
    assert subprocess.run(command, capture_output=True).returncode == 1


def test_every_service_is_watched_and_waits_for_services_that_are_there() -> None:
    for name, service in SERVICES.items():
        assert ("healthcheck" in service) == (name != "airflow-init"), name
        assert set(service.get("depends_on", ())) <= set(SERVICES), name
        for needed, how in service.get("depends_on", {}).items():
            assert (how["condition"] == "service_healthy") == ("healthcheck" in SERVICES[needed]), (name, needed)


def test_checks_of_health_are_rare_enough_to_cost_little() -> None:
    """Less than a twentieth of a core in all; test_compose_stack measures it."""
    checks = [service["healthcheck"] for service in SERVICES.values() if "healthcheck" in service]
    assert sum(CHECK_SECONDS / int(check["interval"].removesuffix("s")) for check in checks) < 0.05


def test_kafka_is_the_one_that_is_tested_and_every_cluster_is_one_of_its_own() -> None:
    clusters = [service for service in SERVICES.values() if service.get("image", "").startswith("apache/kafka")]
    assert [service["image"] for service in clusters] == [f"apache/kafka:{jars.KAFKA_VERSION}"] * 2
    assert len({service["environment"]["CLUSTER_ID"] for service in clusters}) == 2


@pytest.mark.parametrize(
    ("path", "listener"), [("include/compose/mirror.properties", "INTERNAL"), ("include/mirror.properties", "HOST")]
)
def test_the_configurations_name_the_brokers_listeners(path: str, listener: str) -> None:
    configuration = load(ROOT / path)
    for alias, cluster in configuration.clusters.items():
        advertised = SERVICES[alias]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
        found = dict(entry.split("://") for entry in advertised)[listener]
        assert tuple(server.replace("127.0.0.1", "localhost") for server in cluster.bootstrap_servers) == (found,)
        assert listener == "INTERNAL" or SERVICES[alias]["ports"] == [
            f"127.0.0.1:{found.partition(':')[2]}:{found.partition(':')[2]}"
        ]
    assert configuration.enabled


def test_the_database_is_well_when_others_can_reach_it() -> None:
    """While it is made it answers on its socket alone, and is started anew after that."""
    assert "pg_isready --host localhost " in SERVICES["postgres"]["healthcheck"]["test"][-1]


def test_secrets_come_from_the_environment_and_all_of_them_are_explained() -> None:
    used = set(re.findall(r"\$\{(\w+)", TEXT)) | {secret["environment"] for secret in CONTENT["secrets"].values()}
    lines = (ROOT / ".env.example").read_text().splitlines()
    explained = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
    assert used == explained
    assert all(line.endswith("=") for line in lines if line and not line.startswith("#"))
    assert all(":?" in match for match in re.findall(r"\$\{\w+[^}]*\}", TEXT)), "a missing secret must stop the start"
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


def test_what_is_mounted_is_there_and_what_is_set_is_known() -> None:
    for name in SERVICES:
        for source, _ in mounts(name):
            assert (ROOT / source).exists() if source.startswith("./") else source in CONTENT["volumes"], (name, source)
    from airflow.configuration import conf

    # has_option knows what has a default; a component's own start method is described for all of them.
    described = {
        (section, name) for section, found in conf.configuration_description.items() for name in found["options"]
    }
    for name in airflow_services():
        for variable in SERVICES[name]["environment"]:
            if variable.startswith("AIRFLOW__"):
                _, section, option = variable.lower().split("__", 2)
                assert conf.has_option(section, option) or {(section, option), ("core", option)} & described, variable
            elif variable.startswith("AIRMIRROR_"):
                assert f'"{variable}"' in CODE, variable


def test_every_place_of_a_deployment_is_set_and_every_connection_that_is_read_by_default_is_there() -> None:
    from airmirror.on_airflow import deployment as module

    environment = SERVICES["airflow-scheduler"]["environment"]
    for name in ("CONFIG", "LEDGER", "EXPECTATIONS"):
        assert f"AIRMIRROR_{name}" in environment
    place = module.deployment()
    flow = next(iter(load(ROOT / "include/compose/mirror.properties").enabled))
    for conn_id in (*place.alert_receivers, place.metrics_conn_id, flow.settings.spark_conn_id):
        assert f"AIRFLOW_CONN_{conn_id.upper()}" in environment, conn_id
    written = {name for name in re.findall(r'"(AIRMIRROR_[A-Z_]+)"', Path(module.__file__).read_text())}
    assert written == {
        *(name for name in environment if name.startswith("AIRMIRROR_") and name != "AIRMIRROR_SPARK_SECRET"),
        "AIRMIRROR_ALERT_RECEIVERS",
        "AIRMIRROR_METRICS_CONNECTION",
        "AIRMIRROR_REPORT_CONNECTION",  # without a key of the user's own, reports are not signed
    }
    services = airflow_services()
    assert all(environment.items() <= SERVICES[name]["environment"].items() for name in services), "all need all of it"


@pytest.mark.parametrize("path", ["include/compose/mirror.properties", "include/mirror.properties"])
def test_one_broker_can_hold_every_topic_that_is_made(path: str) -> None:
    configuration = load(ROOT / path)
    for flow in configuration.enabled:
        settings = {row.key: row.value for row in resolve(configuration, flow.name)}
        for name, key in KEYS.items():
            if name.endswith("replication.factor") and key.use is Use.USED:
                assert int(settings.get(name, key.default or "1")) in (1, -1), f"{path} must set {name} = 1"


def test_paths_in_the_environment_are_in_the_image_or_mounted() -> None:
    targets = {target for name in airflow_services() for _, target in mounts(name)}
    image = DOCKERFILE.partition("FROM spark AS airflow")[2]
    copied = {f"/opt/airmirror/{name}" for name in re.findall(r"^COPY (\w+) \1$", image, re.MULTILINE)}
    for value in SERVICES["airflow-scheduler"]["environment"].values():
        if isinstance(value, str) and value.startswith("/opt/"):
            assert any(value == known or value.startswith(f"{known}/") for known in targets | copied), value
    assert copied == {"/opt/airmirror/dags"}


def test_the_images_have_one_python_and_the_versions_that_are_tested() -> None:
    stages = dict(reversed(pair) for pair in re.findall(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.MULTILINE))
    assert (
        stages["base"] == "python:${PYTHON}-slim-bookworm"
        and stages["spark"] == "base"
        and stages["airflow"] == "spark"
        and stages["airflow-kubernetes"] == "airflow"
    )
    python = re.search(r"^ARG PYTHON=3\.(\d+)$", DOCKERFILE, re.MULTILINE)
    assert python is not None
    assert 11 <= int(python[1]) <= 13


def test_pip_takes_what_has_a_hash_to_build_with_too() -> None:
    """From a registry, or from a step that took it so; and of what is built on the way, nothing but what is named."""
    lines = re.findall(r"pip (?:install|wheel) (.+?)(?: &&|$)", DOCKERFILE.replace("\\\n", ""), re.MULTILINE)
    fetching = [line for line in lines if "--no-index" not in line and not line.endswith(" .")]
    assert [line.rpartition(" ")[2] for line in fetching] == [
        "requirements-build-hashes.txt",
        "requirements-hashes.txt",
    ]
    assert all("--require-hashes" in line and "--only-binary :all:" in line for line in fetching)
    building = [line for line in lines if "--no-binary" in line or line.endswith(" .")]
    assert len(building) == 2 and all("--no-build-isolation" in line for line in building)


def test_each_image_is_built_once_and_no_registry_is_asked_for_it() -> None:
    built = {name: service["build"]["target"] for name, service in SERVICES.items() if "build" in service}
    assert sorted(built.values()) == ["airflow", "spark"]
    for name, service in SERVICES.items():
        if service["image"].startswith("airmirror-"):
            assert service["pull_policy"] == "never"
            others = name not in built
            assert not others or _reached(name) & set(built), f"{name} can start before its image is built"


def _reached(name: str) -> set[str]:
    """What a service waits for, and what that waits for."""
    direct = set(SERVICES[name].get("depends_on", ()))
    return direct.union(*map(_reached, direct))


def test_what_is_mounted_is_no_part_of_an_image_and_a_secret_neither() -> None:
    """A change of it builds nothing."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    taken = [line.removeprefix("!") for line in lines if line.startswith("!")]
    mounted = {source.removeprefix("./") for name in SERVICES for source, _ in mounts(name) if source.startswith("./")}
    for path in {*mounted, ".env", "tests", "docs"}:
        assert not any(Path(path).is_relative_to(place) or Path(place).is_relative_to(path) for place in taken), path
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    for name in " ".join(copied).split():
        assert any(
            Path(place).match(name) or place.startswith(f"{name}/") or Path(name).match(place) for place in taken
        ), name


def test_a_line_of_the_documents_fills_the_secrets(tmp_path: Path) -> None:
    (line,) = re.findall(r"^\(umask .*>\.env\)$", (ROOT / "docs" / "deploy.md").read_text(), re.MULTILINE)
    (tmp_path / ".env.example").write_text((ROOT / ".env.example").read_text())
    subprocess.run(["sh", "-ec", line], cwd=tmp_path, check=True)
    file = tmp_path / ".env"
    filled = dict(line.split("=", 1) for line in file.read_text().splitlines())
    assert set(filled) == set(re.findall(r"\$\{(\w+)", TEXT))
    assert len(set(filled.values())) == len(filled)
    assert all(re.fullmatch(r"[\w-]{43}=", value) for value in filled.values()), "in URLs and JSON without an escape"
    assert file.stat().st_mode & 0o077 == 0
    Fernet(filled["AIRFLOW_FERNET_KEY"])


def test_airflow_finds_spark_and_the_monitoring_finds_airflow() -> None:
    connection = json.loads(SERVICES["airflow-scheduler"]["environment"]["AIRFLOW_CONN_SPARK_CONNECT_DEFAULT"])
    command = SERVICES[connection["host"]]["command"]
    assert f"spark.connect.grpc.binding.port={connection['port']}" in command
    master = re.search(r"--host (\S+) --port (\d+)", SERVICES["spark-master"]["command"])
    assert master is not None
    address = f"spark://{master[1]}:{master[2]}"
    assert address in command
    assert address in SERVICES["spark-worker"]["command"]
    class_name = re.search(r"--class (\S+)", command)
    assert class_name is not None
    assert class_name[1] in (ROOT / "include" / "airmirror_local" / "spark_connect.py").read_text()

    monitoring = ROOT / "include" / "monitoring"
    prometheus = yaml.safe_load((monitoring / "prometheus.yml").read_text())
    alertmanager = yaml.safe_load((monitoring / "alertmanager.yml").read_text())
    scrape, webhook = prometheus["scrape_configs"][0], alertmanager["receivers"][0]["webhook_configs"][0]
    targets = [
        *scrape["static_configs"][0]["targets"],
        *prometheus["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"],
    ]
    targets.append(webhook["url"].split("/")[2])
    published = {
        name: [port.rpartition(":")[2] for port in service.get("ports", ())] for name, service in SERVICES.items()
    }
    assert all(port in published[name] for name, _, port in (target.partition(":") for target in targets))
    assert webhook["url"].endswith("/airmirror/alerts") and webhook["max_alerts"] * 5_000 < MOST_BYTES
    assert scrape["metrics_path"] == "/airmirror/metrics"
    for service, file in (
        ("prometheus", scrape["authorization"]["credentials_file"]),
        ("alertmanager", webhook["http_config"]["authorization"]["credentials_file"]),
    ):
        assert file.removeprefix("/run/secrets/") in SERVICES[service]["secrets"]


def test_more_workers_are_more_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/deploy.md: ``--scale spark-worker=3``; a Connect session is told of no executors, so a setting says it."""
    from types import SimpleNamespace

    from airmirror.on_spark.sessions import capacity

    settings = dict(re.findall(r"--conf (\S+)=(\S+)", SERVICES["spark-connect"]["command"]))
    settings["spark.master"] = "spark://spark-master:7077"
    session: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    session.conf = SimpleNamespace(get=lambda name, default=None: settings.get(name, default))
    cores = re.search(r"--cores (\d+)", SERVICES["spark-worker"]["command"])
    scale = re.search(r"--scale spark-worker=(\d+)", (ROOT / "docs" / "deploy.md").read_text())
    assert cores is not None and scale is not None
    assert capacity(session).now == int(cores[1]) * int(scale[1]) > 1


def test_only_airflow_and_spark_reach_spark_connect() -> None:
    on = {name: set(service.get("networks", ["default"])) for name, service in SERVICES.items()}
    reaching = {name for name, networks in on.items() if networks & on["spark-connect"]}
    assert reaching == {name for name in SERVICES if name.startswith(("airflow-", "spark-"))}
    assert set().union(*on.values()) == set(CONTENT["networks"])
    assert on["spark-worker"] & on["east"] and on["spark-worker"] & on["west"], "slots copy"
    assert on["airflow-scheduler"] & on["east"] & on["postgres"], "so does what drives them"
    assert "ports" not in SERVICES["spark-connect"]


def test_spark_proves_who_it_is_and_keeps_its_secret_off_command_lines(tmp_path: Path) -> None:
    """And of two networks it names the address that the master is reached from."""
    script = (ROOT / "include" / "compose" / "spark.sh").read_text()
    conf = tmp_path / "conf"
    here = script.replace("/var/lib/spark/conf", str(conf)).replace('"spark-master"', '"127.0.0.1"')
    done = subprocess.run(
        ["bash", "-c", here, "spark.sh", "env"],
        env={"PATH": os.environ["PATH"], "SPARK_AUTHENTICATE_SECRET": "planted"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "SPARK_LOCAL_HOSTNAME=127.0.0.1\n" in done.stdout
    assert f"SPARK_CONF_DIR={conf}" in done.stdout and "planted" not in done.stdout
    file = conf / "spark-defaults.conf"
    settings = dict(line.split() for line in file.read_text().splitlines())
    assert settings.pop("spark.authenticate.secret") == "planted" and set(settings.values()) == {"true"}
    assert file.stat().st_mode & 0o077 == 0
    for name in ("spark-master", "spark-worker", "spark-connect"):
        assert SERVICES[name]["entrypoint"][-1] == dict(mounts(name))["./include/compose/spark.sh"]
        assert "SECRET" not in SERVICES[name]["command"]

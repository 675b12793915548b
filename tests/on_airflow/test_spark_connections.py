"""The Spark connections that windows run with, and the ones refused before anything starts."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.cncf.kubernetes import kube_client
from airflow.sdk.exceptions import AirflowException
from kubernetes.client import ApiException
from urllib3.exceptions import MaxRetryError, ProtocolError

from airmirror.clusters.security.settings import security_of
from airmirror.flows.audit import Range
from airmirror.flows.prepare import Opened
from airmirror.flows.selection import Selection
from airmirror.on_airflow.dags.audit import ReplicateRange
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.tasks import submit
from airmirror.on_airflow.tasks import window as work
from airmirror.on_airflow.tasks.driver import CONFIG, SECRETS, SecretRefused, files_in_secret
from airmirror.on_airflow.tasks.spark import BadSparkConnection, windows_of
from airmirror.on_airflow.tasks.submit import (
    DriverNotPossible,
    KubernetesClientMissing,
    LedgerOutOfReach,
    SparkSubmitMissing,
    Submission,
    SubmittedWindowFailed,
)
from airmirror.on_spark import job
from airmirror.on_spark.ranges import read_ranges
from airmirror.windows.results import WindowResult
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.topics import Record, produce

POSTGRESQL = "postgresql+psycopg2://airmirror:planted@postgres/airmirror"


AUTHORITY = "-----BEGIN CERTIFICATE-----\nplanted\n-----END CERTIFICATE-----\n"
ROLES = ("consumer", "producer", "admin")
REFERRING = """
clusters = east, west
east.bootstrap.servers = one:9092, two:9092
west.bootstrap.servers = three:9092
east->west.enabled = true
east.security.protocol = SASL_SSL
east.sasl.mechanism = PLAIN
east.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required \
    username="me" password="${{env:EAST_PASSWORD}}";
east.ssl.truststore.type = PEM
east.ssl.truststore.location = {store}
east.admin.ssl.truststore.location = {store}
config.providers = env
config.providers.env.class = EnvVarConfigProvider
east->west.source.cluster.ssl.truststore.location = {store}
"""
CONNECTED = """
clusters = east, west, north
east.airflow.conn.id = kafka_east
north.airflow.conn.id = kafka_north
north.bootstrap.servers = old:9092
west.bootstrap.servers = three:9092
east->west.enabled = true
east->west.source.cluster.security.protocol = PLAINTEXT
north->west.enabled = true
"""


def no_connect(*given: object) -> WindowResult:
    raise AssertionError(given)


def given(monkeypatch: pytest.MonkeyPatch, ledger: str, **connection: object) -> None:
    """Ask for a window with a connection of these fields."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps(connection))
    place = Deployment(
        config=Path("mirror.properties"),
        ledger=ledger,
        expectations=Path(),
        alert_receivers=(),
        metrics_conn_id="",
    )
    windows_of(
        conn_id="spark_test",
        deployment=place,
        flow="east->west",
        window="w1",
        selection=Selection(),
        over_connect=no_connect,
    )


@pytest.mark.parametrize("host", ["yarn", "k8s://https://kubernetes:6443"])
def test_a_driver_elsewhere_needs_a_ledger_that_it_can_reach(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    extra = {"deploy-mode": "cluster"}
    with pytest.raises(LedgerOutOfReach, match="PostgreSQL") as caught:
        given(monkeypatch, "sqlite:////var/lib/airmirror/ledger.db", conn_type="spark", host=host, extra=extra)
    assert not caught.value.transient
    given(monkeypatch, POSTGRESQL, conn_type="spark", host=host, extra=extra)
    given(monkeypatch, "sqlite:///ledger.db", conn_type="spark", host=host)  # the driver is here


@pytest.mark.parametrize(
    "where", [{"host": "spark://master:7077"}, {"host": "spark://master", "port": 7077}, {"host": "m", "port": 1}]
)
def test_a_standalone_master_runs_no_python_drivers(monkeypatch: pytest.MonkeyPatch, where: dict[str, object]) -> None:
    with pytest.raises(DriverNotPossible, match="client") as caught:
        given(monkeypatch, POSTGRESQL, conn_type="spark", extra={"deploy-mode": "cluster"}, **where)
    assert not caught.value.transient
    given(monkeypatch, "sqlite:///ledger.db", conn_type="spark", **where)


def test_other_connections_are_refused_with_what_to_make(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadSparkConnection, match="its type is 'http'"):
        given(monkeypatch, POSTGRESQL, conn_type="http", host="master")
    place = Deployment(
        config=Path("mirror.properties"),
        ledger=POSTGRESQL,
        expectations=Path(),
        alert_receivers=(),
        metrics_conn_id="",
    )
    with pytest.raises(BadSparkConnection, match="no such connection"):
        windows_of(
            conn_id="nowhere",
            deployment=place,
            flow="east->west",
            window="w1",
            selection=Selection(),
            over_connect=no_connect,
        )


def test_a_window_on_spark_connect_is_run_and_ended_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setenv(
        "AIRFLOW_CONN_SPARK_TEST", json.dumps({"conn_type": "spark_connect", "host": "here", "port": 15002})
    )
    monkeypatch.setattr(work, "interrupt", lambda *given: asked.append(given))
    place: Any = SimpleNamespace(ledger=POSTGRESQL)

    def replicate(*given: object) -> WindowResult:
        asked.append(given)
        return WindowResult("east->west", "w1", (), 0, 0.0, phases={}, is_cut=False)

    windows = windows_of("spark_test", place, "east->west", "w1", Selection(("t",)), over_connect=replicate)
    windows.replicate()
    windows.interrupt()
    at = SparkConnectHook("spark_test").get_connection_url()
    assert at.startswith("sc://here:15002") and asked == [(place, "east->west", "w1", at, Selection(("t",)))] * 2


def test_replays_are_submitted_too(east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = mirror(east, west, tmp_path, partitions=1)
    produce(east, flow.topic, [Record(b"v")] * 20)
    submitted: list[tuple[list[str], list[Range]]] = []

    class Hook:
        def __init__(self, **given: Any) -> None:
            self.arguments = given["application_args"]

        def submit(self, application: str) -> None:
            ranges = read_ranges(Path(self.arguments[self.arguments.index("--ranges") + 1]))
            submitted.append((self.arguments, ranges))

    monkeypatch.setattr(submit, "SparkSubmitHook", Hook)
    monkeypatch.setattr(submit, "opened_flow", lambda *_: _Opened(flow))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps({"conn_type": "spark", "host": "local[2,4]"}))
    form = {"what": "replay", "topics": [flow.topic], "partitions": [0], "start": 5, "end": 12, "dry_run": False}
    context: Any = {"params": form, "dag_run": SimpleNamespace(run_type="manual")}
    task = ReplicateRange(task_id="replicate_window", flow=flow.flow.name, spark_conn_id="spark_test")
    result = task.windows(context, "w1", Selection((flow.topic,), (0,))).replicate()
    ((arguments, ranges),) = submitted
    assert ranges == [Range(flow.topic, 0, 5, 12)] and result.rows == () and not result.is_cut
    assert {"--no-advance", "--before"} <= set(arguments)


class _Pods:
    """Kubernetes' API as a driver's files use it: what lies there, and how the driver's container has ended."""

    def __init__(self, status: int) -> None:
        self.status, self.secrets, self.pods = status, dict[str, Any](), {"airmirror-driver"}
        self.deleted: list[str] = []

    def create_namespaced_secret(self, namespace: str, body: dict[str, Any]) -> None:
        assert namespace == "mirrors"
        files = {name: b64decode(content).decode() for name, content in body["data"].items()}
        self.secrets[body["metadata"]["name"]] = files

    def delete_namespaced_secret(self, name: str, namespace: str) -> None:
        del self.secrets[name]

    def read_namespaced_pod(self, name: str, namespace: str) -> Any:
        ended = SimpleNamespace(terminated=SimpleNamespace(exit_code=self.status))
        return SimpleNamespace(status=SimpleNamespace(container_statuses=[SimpleNamespace(state=ended)]))

    def read_namespaced_pod_log(self, name: str, namespace: str, tail_lines: int, *, _preload_content: bool) -> Any:
        said = b"of Spark\nairmirror: window w1: done"
        return str(said) if _preload_content else SimpleNamespace(data=said)  # what the real one returns

    def delete_namespaced_pod(self, name: str, namespace: str, **_: object) -> None:
        self.pods.clear()
        self.deleted.append(name)


@pytest.mark.parametrize("status", [0, 2, 75])
def test_a_driver_in_a_pod_has_its_files_from_a_secret(
    east: Broker,
    west: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    status: int,
) -> None:
    flow, pods = mirror(east, west, tmp_path, partitions=1), _Pods(status)
    config = tmp_path / "mirror.properties"
    config.write_text("clusters = east, west\n")
    place = Deployment(config=config, ledger=POSTGRESQL, expectations=Path(), alert_receivers=(), metrics_conn_id="")

    class Hook:
        _submit_sp = SimpleNamespace(returncode=1)

        def __init__(self, **given: Any) -> None:
            assert not given.keys() & {"files", "py_files"}  # nothing is uploaded
            self.given = given

        def submit(self, application: str) -> None:
            ((name, files),) = pods.secrets.items()
            conf, arguments = self.given["conf"], self.given["application_args"]
            mount = conf[f"spark.kubernetes.driver.secrets.{name}"]
            assert application == f"local://{mount}/replicate_window.py" and "main(" in files["replicate_window.py"]
            secrets = arguments[arguments.index("--secrets") + 1]
            assert secrets.startswith(f"{mount}/") and "planted" in files[secrets.removeprefix(f"{mount}/")]
            assert files[arguments[arguments.index("--config") + 1].removeprefix(f"{mount}/")] == config.read_text()
            assert "planted" not in " ".join([*arguments, *conf, *conf.values()])
            if status:
                raise AirflowException("Cannot execute: spark-submit")

    monkeypatch.setattr(kube_client, "get_kube_client", lambda: pods)
    monkeypatch.setattr(submit, "SparkSubmitHook", Hook)
    monkeypatch.setattr(submit, "opened_flow", lambda *_: _Opened(flow))
    extra = {"deploy-mode": "cluster", "namespace": "mirrors"}
    connection = {"conn_type": "spark", "host": "k8s://https://kubernetes:6443", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps(connection))
    window = submit.submitting(place, flow.flow.name, "w1", "spark_test", Selection())
    with caplog.at_level("INFO"):
        if status:
            with pytest.raises(submit.SubmittedWindowFailed) as caught:
                window.run()
            assert caught.value.transient == (status == 75)  # the driver's own status, whatever spark-submit's is
        else:
            assert window.run().rows == ()
    assert "airmirror: window w1: done" in caplog.messages
    assert pods.secrets == {} and bool(pods.pods) == bool(status)  # a driver that has failed can be read


def test_a_task_that_is_killed_ends_its_driver_in_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's hook finds the pod in what spark-submit says."""
    pods = _Pods(0)
    monkeypatch.setattr(kube_client, "get_kube_client", lambda: pods)
    connection = {"conn_type": "spark", "host": "k8s://https://kubernetes:6443", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps(connection))
    with files_in_secret({}, "mirrors") as files:
        hook = submit.SparkSubmitHook(conn_id="spark_test", **files.options)
        hook._submit_sp = SimpleNamespace(poll=lambda: None, kill=lambda: None)
        driver = files.options["conf"]["spark.kubernetes.driver.pod.name"]
        hook._process_spark_submit_log(
            iter(["State changed, new state: ", f"\t pod name: {driver}", "\t phase: Pending"])
        )
        hook.on_kill()
    assert pods.deleted == [driver]


@pytest.mark.parametrize("gone", [True, False])
def test_a_window_ends_as_it_has_whatever_becomes_of_its_secret(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, gone: bool
) -> None:
    pods = _Pods(2)
    monkeypatch.setattr(kube_client, "get_kube_client", lambda: pods)

    def fails(name: str, namespace: str, **_: object) -> None:
        if gone:
            raise ApiException(status=404, reason="planted")  # as whoever deletes all of them does
        raise MaxRetryError(cast(Any, None), f"/{name}", reason=ConnectionRefusedError("planted"))

    monkeypatch.setattr(pods, "delete_namespaced_secret", fails)
    with pytest.raises(SubmittedWindowFailed, match="an operator decides"), files_in_secret({}, "mirrors"):
        raise SubmittedWindowFailed("east->west", "w1", "an operator decides", again=False)
    (name,) = pods.secrets
    assert (f"(planted): kubectl delete secret --namespace mirrors {name}" in caplog.text) == (not gone)
    monkeypatch.setattr(pods, "read_namespaced_pod", fails)
    with files_in_secret({}, "mirrors") as files:
        assert files.ended() is None  # then spark-submit's own status counts


def test_an_account_that_may_not_make_secrets_is_told_its_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = _Pods(0)
    monkeypatch.setattr(kube_client, "get_kube_client", lambda: pods)
    for status in (403, 413, 422, 429, 503):

        def refuse(namespace: str, body: object, status: int = status) -> None:
            raise ApiException(status=status, reason="planted")

        monkeypatch.setattr(pods, "create_namespaced_secret", refuse)
        with pytest.raises(SecretRefused, match=f"{status} planted") as caught, files_in_secret({}, "n"):
            pass
        assert caught.value.transient == (status in (429, 503))
        assert ("rights.yaml" in str(caught.value)) == (status == 403)
        assert ("narrow the run down" in str(caught.value)) == (status in (413, 422))


def test_a_secret_of_which_no_answer_came_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = _Pods(0)
    make = pods.create_namespaced_secret
    monkeypatch.setattr(kube_client, "get_kube_client", lambda: pods)

    def made_unheard(namespace: str, body: dict[str, Any]) -> None:
        make(namespace, body)
        raise ProtocolError("planted")

    monkeypatch.setattr(pods, "create_namespaced_secret", made_unheard)
    with pytest.raises(ProtocolError), files_in_secret({}, "mirrors"):
        pass
    assert pods.secrets == {}


def test_a_window_is_fenced_even_where_its_driver_can_t_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task is killed once: a worker without `yarn`, or a Kubernetes that does not answer, would leave it writing."""
    fenced: list[object] = []
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps({"conn_type": "spark", "host": "yarn"}))
    monkeypatch.setattr(work, "interrupt", lambda *given: fenced.append(given[2]))

    def fails(_: object) -> None:
        raise FileNotFoundError("yarn")

    monkeypatch.setattr(submit.Submission, "kill", fails)
    place: Any = SimpleNamespace(ledger=POSTGRESQL)
    windows = windows_of("spark_test", place, "east->west", "w1", Selection(), over_connect=no_connect)
    with pytest.raises(FileNotFoundError):
        windows.interrupt()
    assert fenced == ["w1"]


def test_a_driver_in_a_pod_is_given_what_its_configuration_refers_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has neither the worker's environment nor its files."""
    pods, config, store = _Pods(0), tmp_path / "mirror.properties", tmp_path / "authorities.pem"
    store.write_text(AUTHORITY)
    config.write_text(REFERRING.format(store=store))
    monkeypatch.setattr(kube_client, "get_kube_client", lambda: pods)
    monkeypatch.setenv("EAST_PASSWORD", "planted ${env:NOT_A_REFERENCE}")
    window = submission(config, namespace="mirrors")
    with work.opened_flow(window.deployment, "east->west", Selection()) as opened, window._files(opened):
        before = [opened.flow.source.client(role) for role in ROLES]
        ((_, files),) = pods.secrets.items()
    monkeypatch.delenv("EAST_PASSWORD")
    store.unlink()
    config.unlink()
    for name in (CONFIG, SECRETS):
        (tmp_path / name).write_text(files[name])
    flow = as_its_driver_has_it(tmp_path / CONFIG, tmp_path / SECRETS, monkeypatch).flow
    for role, was in zip(ROLES, before, strict=True):
        security = security_of("east", flow.source.client(role))
        assert security.truststore and security.truststore.certificates == AUTHORITY
        assert flow.source.client(role)["sasl.jaas.config"] == was["sasl.jaas.config"]
        assert 'password="planted ${env:NOT_A_REFERENCE}"' in was["sasl.jaas.config"]
    assert flow.source.bootstrap_servers == ("one:9092", "two:9092")


@pytest.mark.parametrize("namespace", [None, "mirrors"])
def test_a_driver_has_what_connections_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespace: str | None
) -> None:
    """Over the flow's own lines, whatever keys a configuration knows, and of the other source that may write the same topics."""
    pods, config = _Pods(0), tmp_path / "mirror.properties"
    config.write_text(CONNECTED)
    monkeypatch.setattr(kube_client, "get_kube_client", lambda: pods)
    held = {
        "security.protocol": "SSL",
        "enable.ssl.certificate.verification": "true",
        "transaction.timeout.ms": "90000",
    }
    for alias, server in (("east", "one:9092"), ("north", "new:9092")):
        of_alias = {"conn_type": "airmirror_kafka", "host": server, "extra": held}
        monkeypatch.setenv(f"AIRFLOW_CONN_KAFKA_{alias.upper()}", json.dumps(of_alias))
    window = submission(config, namespace)
    with work.opened_flow(window.deployment, "east->west", Selection()) as opened, window._files(opened) as files:
        if namespace is None:
            opened = as_its_driver_has_it(config, Path(files.paths[SECRETS]), monkeypatch)
        else:
            ((_, found),) = pods.secrets.items()
            (tmp_path / SECRETS).write_text(found[SECRETS])
            opened = as_its_driver_has_it(config, tmp_path / SECRETS, monkeypatch)
    north = opened.configuration.flow("north->west").source
    assert opened.flow.source.bootstrap_servers == ("one:9092",) and north.bootstrap_servers == ("new:9092",)
    assert opened.flow.source.properties == north.properties == held
    assert opened.configuration.flow("east->west").source == opened.flow.source


def submission(config: Path, namespace: str | None = None) -> Submission:
    ledger = f"sqlite:///{config.with_suffix('.db')}"
    place = Deployment(config=config, ledger=ledger, expectations=Path(), alert_receivers=(), metrics_conn_id="")
    in_pod = namespace is not None
    return Submission(place, "east->west", "w1", "spark_test", Selection(), is_cluster=in_pod, namespace=namespace)


def as_its_driver_has_it(config: Path, secrets: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """The flow as the application has it when it begins."""
    seen = list[Opened]()

    def prepare(opened: Opened) -> None:
        seen.append(opened)
        raise LedgerOutOfReach("planted")

    monkeypatch.setattr(job, "prepare", prepare)
    words = {"--config": config, "--flow": "east->west", "--window": "w1", "--secrets": secrets}
    assert job.main([str(word) for pair in words.items() for word in pair]) == job.FINAL
    return seen[0]


def test_a_driver_s_files_go_before_its_end_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow kills a task that has not ended five seconds later."""
    config, left = tmp_path / "mirror.properties", list[bool]()
    config.write_text(REFERRING.format(store=tmp_path))
    monkeypatch.setenv("EAST_PASSWORD", "planted")
    window = submission(config)

    class Hook:
        _submit_sp = None

        def __init__(self, **given: Any) -> None:
            arguments = given["application_args"]
            self.secrets = Path(arguments[arguments.index("--secrets") + 1])

        def submit(self, application: str) -> None:
            left.append(self.secrets.exists())
            window.kill()
            raise AirflowException("killed")

        def on_kill(self) -> None:
            left.append(self.secrets.parent.exists())

    monkeypatch.setattr(submit, "SparkSubmitHook", Hook)
    with pytest.raises(SubmittedWindowFailed):
        window.run()
    assert left == [True, False]


def test_a_worker_without_spark_submit_is_told_what_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "mirror.properties"
    config.write_text(REFERRING.format(store=tmp_path))
    monkeypatch.setenv("EAST_PASSWORD", "planted")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps({"conn_type": "spark", "host": "local[2,4]"}))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkSubmitMissing, match=r"needs spark-submit.*extra 'spark'") as caught:
        submission(config).run()
    assert not caught.value.transient


def test_airflow_needs_a_package_for_kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(submit.spark_submit, "kube_client")
    with pytest.raises(KubernetesClientMissing, match="pip install") as caught:
        given(monkeypatch, POSTGRESQL, conn_type="spark", host="k8s://https://kubernetes:6443")
    assert not caught.value.transient
    given(monkeypatch, POSTGRESQL, conn_type="spark", host="yarn")


class _Opened:
    def __init__(self, flow: Mirror) -> None:
        self.flow = flow

    def __enter__(self) -> Any:
        return self.flow.opened

    def __exit__(self, *_: object) -> None: ...

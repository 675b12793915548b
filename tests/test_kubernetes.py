"""include/kubernetes, its page and the test on a real cluster fit each other, the code, the images and Spark."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from airmirror.on_airflow.tasks import driver
from airmirror_local import jars
from environments import in_kubernetes as cluster
from support import ROOT, pod_scripts

MANIFESTS = ROOT / "include" / "kubernetes"
PAGE = (ROOT / "docs" / "kubernetes.md").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()
VALUES = yaml.safe_load((MANIFESTS / "airflow-values.yaml").read_text())
OBJECTS: dict[str, list[dict[str, Any]]] = {
    file.name: list(yaml.safe_load_all(file.read_text()))
    for file in (*MANIFESTS.glob("*.yaml"), ROOT / "tests" / "environments" / "kubernetes.yaml")
    if file.name != "airflow-values.yaml"
}
SCRIPTS = {name: text for name, text in vars(pod_scripts).items() if name.isupper() and isinstance(text, str)}
SHELL, _, _, CUT = (SCRIPTS.pop(name) for name in ("WINDOWS", "ENDED", "AGAIN", "CUT"))
# What the scripts ask of what they are given: parts of classes.
PARTS = {
    ("airmirror.on_airflow.tasks.spark", "Windows"): {"replicate"},
    ("airmirror.on_airflow.tasks.submit", "SubmittedWindowFailed"): {"transient"},
    ("airmirror.windows.results", "WindowResult"): {"copied"},
    ("airmirror.flows.verification", "ComparedPartition"): {"records"},
    ("airmirror_local.airflow_client", "AirflowClient"): {"runs", "tasks", "request", "url"},
}
VERBS = {"create": "create", "read": "get", "delete": "delete"}
RESOURCES = {"secret": "secrets", "pod": "pods", "pod_log": "pods/log"}
RELEASE = "airflow"  # of Airflow's chart, whose accounts begin with it


def of(kind: str, name: str) -> dict[str, Any]:
    (found,) = (each for each in every() if each["kind"] == kind and each["metadata"]["name"] == name)
    return found


def every() -> Iterator[dict[str, Any]]:
    for objects in OBJECTS.values():
        yield from objects


def settings(name: str) -> dict[str, str]:
    """Spark's, of a config map."""
    lines = of("ConfigMap", name)["data"]["spark-defaults.conf"].splitlines()
    return dict(line.split(None, 1) for line in lines)


def values(tree: Any, key: str) -> Iterator[Any]:
    """Every value that the key has, wherever it is."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from [value] if name == key else values(value, key)
    elif isinstance(tree, list):
        for each in tree:
            yield from values(each, key)


def labels(text: str) -> dict[str, str]:
    return dict(each.split("=") for each in text.split(","))


def granted(account: str) -> set[tuple[str, str]]:
    """The verbs that a service account has, and of what."""
    found = set()
    for binding in every():
        if binding["kind"] == "RoleBinding" and any(each["name"] == account for each in binding["subjects"]):
            for rule in of("Role", binding["roleRef"]["name"])["rules"]:
                found |= {(verb, resource) for verb in rule["verbs"] for resource in rule["resources"]}
    return found


def test_airflow_s_tasks_may_do_what_they_do() -> None:
    done = set(re.findall(r"\bpods\.(create|read|delete)_namespaced_(\w+)", Path(driver.__file__).read_text()))
    assert len(done) == 5
    assert {(VERBS[verb], RESOURCES[resource]) for verb, resource in done} <= granted(f"{RELEASE}-worker")
    executors = {(verb, "pods") for verb in ("create", "get", "list", "watch", "delete")}
    assert executors <= granted("airmirror-spark") and executors <= granted(f"{RELEASE}-worker")
    assert not any(resource == "secrets" for _, resource in granted("airmirror-spark"))


def test_accounts_are_those_that_have_rights() -> None:
    accounts = {each["metadata"]["name"] for each in every() if each["kind"] == "ServiceAccount"}
    bound = {each["name"] for binding in every() for each in binding.get("subjects", ())}
    named = {name for each in every() for name in values(each, "serviceAccountName")}
    for name in ("spark-connect", "spark-submit"):
        named |= {value for key, value in settings(name).items() if key.endswith(".serviceAccountName")}
    assert named == bound == accounts
    assert f"helm install {RELEASE} " in PAGE


def test_labels_are_those_by_which_pods_are_known() -> None:
    assert labels(cluster.WINDOW).items() | labels(cluster.OURS).items() == driver.LABELS.items()
    assert f"kubectl delete secret -l {cluster.WINDOW}`" in PAGE
    prefix = "spark.kubernetes.executor.label."
    executor = {
        key.removeprefix(prefix): value for key, value in settings("spark-connect").items() if key.startswith(prefix)
    }
    assert executor == labels(f"{cluster.OURS},{cluster.EXECUTORS}")
    server = of("Deployment", "spark-connect")["spec"]["template"]["metadata"]["labels"]
    assert server == of("Deployment", "spark-connect")["spec"]["selector"]["matchLabels"]
    assert server == labels(f"{cluster.OURS},{cluster.SERVER}")
    for name in ("spark-connect", "spark-connect-driver"):
        assert of("Service", name)["spec"]["selector"] == server
    policy = of("NetworkPolicy", "spark-connect")["spec"]
    airflow, executors = (each["from"][0]["podSelector"]["matchLabels"] for each in policy["ingress"])
    assert policy["podSelector"]["matchLabels"] == server and executors == executor
    assert airflow.items() <= of("Pod", "worker")["metadata"]["labels"].items()
    assert of("PodDisruptionBudget", "spark-executors")["spec"]["selector"]["matchLabels"] == executor


def test_an_executor_can_leave_once_another_one_is_there() -> None:
    """A budget that equals what is always there would let no drain end."""
    spark, budget = settings("spark-connect"), of("PodDisruptionBudget", "spark-executors")["spec"]
    always = int(spark["spark.dynamicAllocation.minExecutors"])
    assert 0 < budget["minAvailable"] < always < int(spark["spark.dynamicAllocation.maxExecutors"])
    assert f"`minExecutors` is {always}:" in PAGE and "`spark-executors`" in PAGE
    assert f"`kubectl drain NODE {' '.join(cluster.DRAIN)}`" in PAGE
    assert cluster.CORES == always * int(spark["spark.executor.cores"]) < cluster.PARTITIONS


def test_spark_connect_is_where_airflow_looks_for_it() -> None:
    (port,) = of("Service", "spark-connect")["spec"]["ports"]
    (container,) = of("Deployment", "spark-connect")["spec"]["template"]["spec"]["containers"]
    ports = {each["name"]: str(each["containerPort"]) for each in container["ports"]}
    spark, name = settings("spark-connect"), of("Service", "spark-connect")["metadata"]["name"]
    assert f"host `{name}`, port {port['port']}." in PAGE and str(port["port"]) == ports[port["targetPort"]]
    connection = json.loads(cluster.SECRET["AIRFLOW_CONN_SPARK_CONNECT_DEFAULT"])
    assert (connection["host"], connection["port"]) == (name, port["port"])
    assert f"sc://{name}:{port['port']}" in pod_scripts.RUN_WINDOW
    (written,) = re.findall(r"AIRFLOW_CONN_SPARK_CONNECT_DEFAULT='(.*)'$", PAGE, re.MULTILINE)
    assert json.loads(written) == connection
    assert ports == {
        "connect": spark["spark.connect.grpc.binding.port"],
        "driver": spark["spark.driver.port"],
        "blocks": spark["spark.driver.blockManager.port"],
    }
    assert of("Service", spark["spark.driver.host"])["spec"]["clusterIP"] == "None"
    policy = of("NetworkPolicy", "spark-connect")["spec"]["ingress"]
    assert [each["port"] for rule in policy for each in rule["ports"]] == list(ports)


def test_images_are_those_that_the_page_builds_and_versions_those_that_are_tested() -> None:
    built = dict(re.findall(r"^docker build --target (\S+) --tag (\S+) \.  #", PAGE, re.MULTILINE))
    assert built.keys() <= set(re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE))
    named = {image for each in every() for image in values(each, "image")} | set(values(VALUES, "repository"))
    for name in ("spark-connect", "spark-submit"):
        named |= {value for key, value in settings(name).items() if key.endswith("container.image")}
    compose = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"]
    assert named == {*built.values(), f"apache/kafka:{jars.KAFKA_VERSION}", compose["postgres"]["image"]}
    pinned = re.search(r"^apache-airflow==(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert pinned and VALUES["airflowVersion"] == pinned[1]


def test_the_page_and_the_folder_name_the_same_files() -> None:
    named = set(re.findall(r"include/kubernetes/([\w.-]+\w)", PAGE + DOCKERFILE))
    assert named == {file.name for file in MANIFESTS.iterdir()}
    assert "tests/environments/in_kubernetes.py" in (ROOT / "Makefile").read_text()


def test_airflow_s_pods_have_what_the_page_puts_into_the_namespace() -> None:
    (secret,) = re.findall(r"^kubectl create secret generic airmirror ((?:.*\\\n)+.*)$", PAGE, re.MULTILINE)
    assert re.findall(r"--from-literal (\w+)=", secret) == list(cluster.SECRET)
    (file,) = re.findall(r"^kubectl create configmap airmirror --from-file (\S+)$", PAGE, re.MULTILINE)
    mounts = {each["name"]: each["mountPath"] for each in VALUES["volumeMounts"]}
    volumes = {each["name"]: each["configMap"]["name"] for each in VALUES["volumes"]}
    environment = {each["name"]: each["value"] for each in VALUES["env"]}
    assert environment["AIRMIRROR_CONFIG"] == f"{mounts['airmirror']}/{Path(file).name}"
    assert volumes == {"airmirror": "airmirror", "spark-submit": "spark-submit"}
    assert environment["SPARK_CONF_DIR"] == mounts["spark-submit"] and of("ConfigMap", "spark-submit")
    assert yaml.safe_load(VALUES["extraEnvFrom"]) == [{"secretRef": {"name": "airmirror"}}]
    metadata = re.search(r"^kubectl create secret generic (\S+) --from-literal connection=", PAGE, re.MULTILINE)
    assert metadata and VALUES["data"]["metadataSecretName"] == metadata[1]
    home = re.search(r"^WORKDIR (\S+)\nCOPY requirements.txt \./$", DOCKERFILE, re.MULTILINE)
    assert home and VALUES["config"]["core"]["dags_folder"] == f"{home[1]}/dags"
    # The pod that asks is as one of them.
    (worker,) = of("Pod", "worker")["spec"]["containers"]
    own = {each["name"] for each in worker["env"]}
    extra = {each["name"] for each in yaml.safe_load(VALUES["extraEnv"])}
    assert own == environment.keys() | extra and {each["mountPath"] for each in worker["volumeMounts"]} == {
        *mounts.values()
    }


@cache
def tree_of(module: str) -> ast.Module:
    place = ROOT / "include" / Path(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return ast.parse(file.read_text())


def bound(module: str) -> dict[str, ast.AST]:
    """What a module of the package has at its top: names and the statements that make them. It is not loaded, nor is Airflow."""
    found: dict[str, ast.AST] = {}
    for node in tree_of(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name: node for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id: node for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    folder = ROOT / "include" / Path(*module.split("."))
    return found | {file.stem: tree_of(module) for file in folder.glob("*.py")}


def fields(made: ast.ClassDef) -> list[str]:
    return [
        each.target.id for each in made.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]


def signature(made: ast.AST) -> inspect.Signature | None:
    """How a function, or a class of data, is called."""
    if isinstance(made, ast.ClassDef):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind, default=None) for name in fields(made)])
    if not isinstance(made, ast.FunctionDef):
        return None
    bare = ast.parse("def bare(): pass").body[0]
    assert isinstance(bare, ast.FunctionDef)
    bare.args = made.args
    scope: dict[str, Any] = {}
    exec(compile(ast.Module([bare], []), "bare", "exec"), scope)  # as here, annotations are not evaluated
    return inspect.signature(scope["bare"])


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_in_pods_fit_the_code(name: str) -> None:
    script = ast.parse(SCRIPTS[name])
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(script)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0].startswith("airmirror")
        for alias in node.names
    }
    for module, what in imported.values():
        assert what in bound(module), (module, what)
    for node in ast.walk(script):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in imported:
            module, what = imported[node.func.id]
            if (accepts := signature(bound(module)[what])) is not None:
                accepts.bind(*node.args, **{each.arg: each.value for each in node.keywords if each.arg})
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            module, what = imported[node.value.id]
            if isinstance(bound(module)[what], ast.Module):
                assert node.attr in bound(f"{module}.{what}"), (module, what, node.attr)


@pytest.mark.parametrize(("module", "name"), PARTS)
def test_parts_that_scripts_ask_for_are_there(module: str, name: str) -> None:
    made = bound(module)[name]
    assert isinstance(made, ast.ClassDef)
    methods = {each.name for each in made.body if isinstance(each, ast.FunctionDef)}
    assert PARTS[module, name] <= methods.union(fields(made))


def test_commands_in_pods_are_those_of_airmirror() -> None:
    """docs/cli.md, which is made from the commands, has each with its options."""
    text, pages = Path(cluster.__file__).read_text(), (ROOT / "docs" / "cli.md").read_text()
    commands = re.findall(r'"airmirror", ("[^)]*)\)', text) + re.findall(r"\bapp\(\[(.*)\]\)", pod_scripts.RUN_WINDOW)
    for command in commands:
        name, *words = re.findall(r'"([^"]*)"', command)
        (section,) = re.findall(rf"^## airmirror {name}$(.*?)(?=^## |\Z)", pages, re.MULTILINE | re.DOTALL)
        assert all(f"`{word}`" in section for word in words if word.startswith("--")), command
    assert len(commands) == 2
    assert CUT in (ROOT / "include" / "airmirror" / "cli" / "show.py").read_text()
    assert subprocess.run(["bash", "-n", "-c", SHELL]).returncode == 0


def spark_on_kubernetes() -> zipfile.ZipFile:
    """Spark's own part for Kubernetes, of the version that is tested."""
    (place,) = importlib.util.find_spec("pyspark").submodule_search_locations  # type: ignore[union-attr, misc]
    (jar,) = Path(place, "jars").glob("spark-kubernetes_*.jar")
    return zipfile.ZipFile(jar)


def test_the_entry_point_starts_executors_as_spark_asks_for_them(tmp_path: Path) -> None:
    (tmp_path / "tini").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "find_spark_home.py").write_text("print('/spark')\n")
    for file in tmp_path.iterdir():
        file.chmod(0o755)
    script = (MANIFESTS / "entrypoint.sh").read_text()
    asked = set(re.findall(r"\$\{?(SPARK_\w+)", script)) - {"SPARK_HOME"} | {"SPARK_JAVA_OPT_"}
    given = {name: f"<{name}>" for name in asked} | {"SPARK_JAVA_OPT_0": "-Done=1 2", "SPARK_JAVA_OPT_1": "-Dtwo"}
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **given}

    def started(*words: str) -> list[str]:
        command = ["bash", MANIFESTS / "entrypoint.sh", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    executor = started("executor")
    assert executor[:6] == [
        "--",
        "java",
        "-Done=1 2",
        "-Dtwo",
        "-Xms<SPARK_EXECUTOR_MEMORY>",
        "-Xmx<SPARK_EXECUTOR_MEMORY>",
    ]
    (main,) = (word for word in executor if word.startswith("org.apache.spark."))
    with spark_on_kubernetes() as spark:
        accepted = spark.read(f"{main.replace('.', '/')}$.class")
        constants = spark.read("org/apache/spark/deploy/k8s/Constants$.class")
    options = [word for word in executor[1:] if word.startswith("--")]
    assert len(options) == 7 and all(option.encode() in accepted for option in options)
    assert all(name.encode() in constants for name in asked)
    submitted = started("driver", "--class", "Main")
    assert submitted[:4] == ["--", "spark-submit", "--deploy-mode", "client"] and submitted[-2:] == ["--class", "Main"]
    assert started("sleep", "1") == ["--", "sleep", "1"]


@pytest.mark.skipif(sys.platform != "linux", reason="the signal is Linux's")
def test_an_executor_that_must_leave_is_asked_to_and_waited_for(tmp_path: Path) -> None:
    """Kubernetes runs the script before it ends the pod: Spark names the place, which is in the image."""
    assert settings("spark-connect")["spark.decommission.enabled"] == "true"
    (place,) = re.findall(r"^COPY include/kubernetes/decommission\.sh (\S+)$", DOCKERFILE, re.MULTILINE)
    with spark_on_kubernetes() as spark:
        assert place.encode() in spark.read("org/apache/spark/deploy/k8s/Config$.class")
    script = MANIFESTS / "decommission.sh"
    assert os.access(script, os.X_OK) and "pgrep --oldest --exact java" in script.read_text()
    marker = tmp_path / "asked"
    executor = f"trap 'touch {marker}; exit' PWR; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(["bash", "-c", executor], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        (tmp_path / "pgrep").write_text(f"#!/bin/sh\necho {process.pid}\n")  # there, java is the executor alone
        (tmp_path / "pgrep").chmod(0o755)
        with subprocess.Popen([script], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}) as asking:
            try:
                process.wait(30)
                assert asking.wait(30) == 0 and marker.exists()
            finally:
                process.kill()
                asking.kill()

"""Airmirror as one of Airflow's providers: its metadata, its connection type with its form, and the test of a connection."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import airflow
import jsonschema
import pytest
import yaml
from airflow.providers_manager import ProvidersManager
from airflow.sdk import BaseOperatorLink
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime
from airflow.triggers.base import BaseTrigger

import airmirror
from airmirror.clusters.admin.client import Admin
from airmirror.on_airflow.hook import ClusterHook
from airmirror.on_airflow.provider import get_provider_info
from airmirror_local.brokers import Broker
from support import ROOT

TYPE = "airmirror_kafka"


def test_airflow_lists_it_with_its_connection_type() -> None:
    manager = ProvidersManager()
    assert manager.providers["airmirror"].version == airmirror.__version__
    hook = ProvidersManagerTaskRuntime().hooks[TYPE]
    assert hook is not None and (hook.package_name, hook.hook_name) == ("airmirror", "Kafka cluster (Airmirror)")
    assert {"port", "schema"} == set(manager.field_behaviours[TYPE]["hidden_fields"])
    assert manager.field_behaviours[TYPE]["relabeling"]["host"] == "bootstrap.servers"
    fields = {
        widget.field_name for widget in manager.connection_form_widgets.values() if widget.package_name == "airmirror"
    }
    assert fields == {"security.protocol", "sasl.mechanism"}


def test_it_describes_itself_as_airflow_s_schema_has_it() -> None:
    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_every_link_and_trigger_of_the_library_is_named() -> None:
    """What a provider's description names is what the package has; no line is left from code that has been renamed."""
    info, package = get_provider_info(), Path(airmirror.__file__).parent
    links = import_module("airmirror.on_airflow.dags.common")
    own = {name for name, each in vars(links).items() if _is_own(each, BaseOperatorLink, links.__name__)}
    assert {f"{links.__name__}.{name}" for name in own} == set(info["extra-links"]) and len(own) > 1
    modules = (
        f"airmirror.on_airflow.triggers.{each.stem}" for each in (package / "on_airflow" / "triggers").glob("*.py")
    )
    with_trigger = {
        name for name in modules if any(_is_own(each, BaseTrigger, name) for each in vars(import_module(name)).values())
    }
    assert with_trigger == {name for each in info["triggers"] for name in each["python-modules"]}
    assert import_module(info["hooks"][0]["python-modules"][0]).ClusterHook is ClusterHook


def test_the_registry_is_given_the_same() -> None:
    info, listed = get_provider_info(), yaml.safe_load((ROOT / ".airflow-registry.yaml").read_text())
    assert [listed[key] for key in ("package-name", "display-name", "description")] == [
        info[key] for key in ("package-name", "name", "description")
    ]
    for kind in ("hooks", "triggers"):
        modules = [each["module"].rpartition(".")[0] for each in listed[kind]]
        assert modules == [name for each in info[kind] for name in each["python-modules"]]
    for each in (each for kind in ("hooks", "triggers", "other") for each in listed[kind]):
        module, _, name = each["module"].rpartition(".")
        assert callable(getattr(import_module(module), name)) and each["description"]


def _is_own(thing: object, base: type, module: str) -> bool:
    return inspect.isclass(thing) and issubclass(thing, base) and thing.__module__ == module


def test_airflow_s_command_answers(tmp_path: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("airflow")),
        "providers",
        "get",
        "airmirror",
        "--full",
        "--output",
        "json",
    ]
    environment = {"AIRFLOW_HOME": str(tmp_path), "PATH": str(Path(sys.executable).parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert found["package-name"] == "airmirror" and "extra-links" in found


def given(monkeypatch: pytest.MonkeyPatch, host: str) -> ClusterHook:
    monkeypatch.setenv("AIRFLOW_CONN_EAST", json.dumps({"conn_type": TYPE, "host": host}))
    return ClusterHook("east")


def test_a_connection_that_names_no_brokers_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    good, said = given(monkeypatch, "").test_connection()
    assert not good and "bootstrap.servers" in said


def test_a_connection_is_tested_against_its_cluster(monkeypatch: pytest.MonkeyPatch, east: Broker) -> None:
    good, said = given(monkeypatch, east.bootstrap).test_connection()
    assert good and "topics" in said
    # Seconds for which a name without an address is waited for.
    monkeypatch.setattr(Admin.topic_names, "__defaults__", (1.0,))
    good, said = given(monkeypatch, "nowhere.invalid:9092").test_connection()
    assert not good and "nowhere.invalid" in said

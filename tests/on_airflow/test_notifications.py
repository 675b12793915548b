"""The notifier of a flow: what is wrong with it is said when the DAG is parsed, and nothing of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

from airmirror.config import Flow, parse
from airmirror.on_airflow.dags.audit import audit_dag
from airmirror.on_airflow.dags.notifications import BadNotifier, callbacks
from airmirror.on_airflow.dags.replicate import replicate_dag

TEXT = """
clusters = a, b
a.bootstrap.servers = one:1
b.bootstrap.servers = two:1
a->b.enabled = true
a->b.on.failure.notifier = {}
"""


def made(value: str) -> dict[str, Any]:
    return callbacks(parse(TEXT.format(value), "test").flow("a->b"), "replicate")


def test_one_call_an_incident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRMIRROR_LEDGER", f"sqlite:///{tmp_path / 'ledger.db'}")
    called = made(f'support.notifier.FileNotifier {{"path": "{tmp_path}/told"}}')
    failed, succeeded = called["on_failure_callback"], called["on_success_callback"]

    def run(name: str) -> Any:
        return {"dag_run": SimpleNamespace(dag_id="replicate.a.b", run_id=name)}

    succeeded(run("r0"))
    for name in ("r1", "r2"):
        failed(run(name))
    succeeded(run("r3"))
    failed(run("r4"))
    assert (tmp_path / "told").read_text().split() == ["replicate.a.b", "r1", "replicate.a.b", "r4"]


@pytest.mark.parametrize(("make", "form"), [(replicate_dag, {}), (audit_dag, {"what": "interval"})])
def test_a_run_of_a_part_ends_no_incident_and_begins_none(
    make: Callable[[Flow], DAG], form: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does one that only looks."""
    monkeypatch.setenv("AIRMIRROR_LEDGER", f"sqlite:///{tmp_path / 'ledger.db'}")
    notifier = f'support.notifier.FileNotifier {{"path": "{tmp_path}/told"}}'
    dag = make(parse(TEXT.format(notifier), "test").flow("a->b"))
    failed: Any = dag.on_failure_callback
    succeeded: Any = dag.on_success_callback

    def run(name: str, **params: Any) -> Any:
        return {"dag_run": SimpleNamespace(dag_id="replicate.a.b", run_id=name), "params": form | params}

    failed(run("r1", partitions=[3]))
    failed(run("r2", topics=None, partitions=None, dry_run=False))
    for part in ({"topics": ["orders"]}, {"partitions": [0]}, {"dry_run": True}):
        succeeded(run("r3", **part))
        failed(run("r4"))
    succeeded(run("r5"))
    failed(run("r6"))
    assert (tmp_path / "told").read_text().split() == ["replicate.a.b", "r2", "replicate.a.b", "r6"]


def test_what_nobody_heard_of_is_told_by_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRMIRROR_LEDGER", f"sqlite:///{tmp_path / 'ledger.db'}")
    failed = made(f'support.notifier.FileNotifier {{"path": "{tmp_path}/away/told"}}')["on_failure_callback"]

    def run(name: str) -> Any:
        return {"dag_run": SimpleNamespace(dag_id="replicate.a.b", run_id=name)}

    with pytest.raises(FileNotFoundError):
        failed(run("r1"))
    (tmp_path / "away").mkdir()
    for name in ("r2", "r3"):
        failed(run(name))
    assert (tmp_path / "away" / "told").read_text().split() == ["replicate.a.b", "r2"]


def test_a_ledger_that_is_away_keeps_nobody_from_hearing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run fails then: the one thing that tells of it may not need the ledger."""
    (tmp_path / "no-directory").touch()
    monkeypatch.setenv("AIRMIRROR_LEDGER", f"sqlite:///{tmp_path}/no-directory/ledger.db")
    called = made(f'support.notifier.FileNotifier {{"path": "{tmp_path}/told"}}')
    called["on_success_callback"]({})
    called["on_failure_callback"]({"dag_run": SimpleNamespace(dag_id="replicate.a.b", run_id="r1")})
    assert (tmp_path / "told").read_text().split() == ["replicate.a.b", "r1"]


@pytest.mark.parametrize(
    "value",
    [
        "no.such.Notifier",
        "support.notifier.NoSuch",
        "pathlib.Path",
        "support.notifier.FileNotifier {planted",
        'support.notifier.FileNotifier {"planted": 1}',
        "x",
    ],
)
def test_what_can_not_be_made(value: str) -> None:
    with pytest.raises(BadNotifier, match=r"a->b.*on\.failure\.notifier") as caught:
        made(value)
    assert "{planted" not in str(caught.value)


def test_a_module_that_fails_is_a_notifier_that_can_not_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it raises: DAGs of other flows are made after it."""
    monkeypatch.syspath_prepend(tmp_path)
    for name, text, said in (
        ("without_its_variable", "import os\nos.environ['NO_SUCH_VARIABLE']", "KeyError: 'NO_SUCH_VARIABLE'"),
        ("unfinished", "class Notifier(", "SyntaxError: "),
    ):
        (tmp_path / f"{name}.py").write_text(text)
        with pytest.raises(BadNotifier, match=said):
            made(f"{name}.Notifier")


def test_none() -> None:
    assert callbacks(parse(TEXT.rsplit("\n", 2)[0], "test").flow("a->b"), "replicate") == {}


def test_nothing_is_called_that_is_no_notifier(tmp_path: Path) -> None:
    mark = tmp_path / "called"
    with pytest.raises(BadNotifier, match="no Airflow notifier"):
        made(f'os.system {{"command": "touch {mark}"}}')
    assert not mark.exists()

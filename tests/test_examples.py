"""The configurations in examples/: each is read without an objection, plans what it says, and runs a dry run on two clusters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror.config import load
from airmirror.topics.remote import Topic, plan
from airmirror_local.brokers import Broker
from support import ROOT
from support.topics import create_topic

FOLDER = ROOT / "examples"
THERE = (
    "audit",
    "customers-eu",
    "east.orders",
    "orders",
    "orders-scratch",
    "payments-2",
    "west.orders",
    "__consumer_offsets",
)
EVERYTHING = {name: name for name in THERE if not name.startswith("__")}
PLANS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("disaster-recovery", "primary->standby"): EVERYTHING,
    ("active-active", "east->west"): {"customers-eu": "east.customers-eu", "orders": "east.orders"},
    ("active-active", "west->east"): {"customers-eu": "west.customers-eu", "orders": "west.orders"},
    ("migration", "old->new"): EVERYTHING,
    ("migration", "new->old"): {},
}


NOTES = {"migration": ["new->old.topics: is empty: no topic is replicated (.* is every one)"]}


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PRIMARY_PASSWORD", "STANDBY_PASSWORD"):
        monkeypatch.setenv(name, "secret")


def test_each_example_is_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.properties")} == {name for name, _ in PLANS}
    page = (FOLDER / "README.md").read_text()
    assert all(f"({name}.properties)" in page for name, _ in PLANS)


@pytest.mark.parametrize("name", sorted({name for name, _ in PLANS}))
def test_the_command_reads_it_without_an_objection(name: str) -> None:
    done = CliRunner().invoke(app, ["config", "--config", str(FOLDER / f"{name}.properties")])
    assert done.exit_code == 0, done.output
    assert re.findall(r"^note line \d+: (.*)$", done.output, re.MULTILINE) == NOTES.get(name, [])
    assert "secret" not in done.output


@pytest.mark.parametrize(("name", "flow"), PLANS)
def test_it_plans_what_it_says(name: str, flow: str) -> None:
    found = plan(load(FOLDER / f"{name}.properties").flow(flow), {topic: Topic(3) for topic in THERE}, {})
    assert (found.topics, found.refused) == (PLANS[name, flow], ())
    assert {each.name for each in found.create} == set(found.topics.values())
    assert all(each.replication_factor == 3 for each in found.create)


def test_a_dry_run_of_each_asks_two_clusters_and_writes_nothing(
    east: Broker, west: Broker, tmp_path: Path, topic
) -> None:  # type: ignore[no-untyped-def]
    name = create_topic(east, topic("orders"), 2)
    for (example, flow), planned in PLANS.items():
        source, target = flow.split("->")
        lines = [f"{source}.bootstrap.servers = {east.bootstrap}", f"{target}.bootstrap.servers = {west.bootstrap}"]
        lines += ["security.protocol = PLAINTEXT", "replication.factor = 1"]
        lines += [f"{flow}.topics = {name}"] if planned else []  # of all that the tests' brokers have, one
        (tmp_path / "over.properties").write_text("\n".join(lines))
        words = ["plan", "--config", str(FOLDER / f"{example}.properties"), "--flow", flow]
        words += ["--secrets", str(tmp_path / "over.properties"), "--ledger", f"sqlite:///{tmp_path / 'none.db'}"]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0 and (name in done.output) is bool(planned), done.output
    assert not (tmp_path / "none.db").exists()

"""Errors at the command line: whose they are by the exit status, and what programs get of them."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from airmirror.cli.failures import failures_reported, status_of, status_of_all
from airmirror.cli.main import app
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.config.errors import UnknownFlow
from airmirror.flows.freezing import NoSuchTopic, NotFrozen
from airmirror_local.ports import free_port
from support.deployment import Deployment

GONE, WRONG = BrokerUnreachable("east", "b:1", "gone"), UnknownFlow("file", "a->b", ())


def test_trying_again_is_not_taken_for_what_needs_a_person() -> None:
    assert status_of_all([GONE, GONE]) == 75
    assert status_of_all([GONE, WRONG]) == status_of_all([]) == 1
    wrong_topics = (NoSuchTopic("a->b", ("typo",)), NotFrozen("a->b", ("orders",), ()))
    assert [status_of(each) for each in wrong_topics] == [2, 2]


@pytest.mark.parametrize("words", [("status",), ("plan",), ("run-window", "--local")], ids=" ".join)
def test_a_cluster_that_is_down_is_75_and_told_to_programs(words: tuple[str, ...], tmp_path: Path) -> None:
    server = f"127.0.0.1:{free_port()}"
    failed = Deployment(tmp_path, server, server, ".*")(*words, "--json")
    assert failed.exit_code == 75, failed.output
    error = json.loads(failed.stdout)["error"]
    assert error["name"] == "BrokerUnreachable" and error["transient"] and error["message"].count(server) == 1
    assert "error (try again): " in failed.stderr and "Traceback" not in failed.output


def test_a_move_group_that_there_is_not_is_bad_input(tmp_path: Path) -> None:
    failed = Deployment(tmp_path, "x:1", "y:1", ".*")("migration", "run", "--move", "shop", "--reason", "x")
    assert failed.exit_code == 2 and "no move group 'shop'; set" in failed.stderr, failed.output


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [(socket.EAI_NONAME, 2, "no address belongs to nowhere.example:9092"), (socket.EAI_AGAIN, 75, "can't be reached")],
)
def test_a_name_without_an_address_is_bad_input_unless_nobody_could_look_it_up(
    code: int, status: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(code, "no answer of a name server")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    failed = Deployment(tmp_path, "nowhere.example:9092", "nowhere.example:9092", ".*")("plan")
    assert failed.exit_code == status and said in failed.stderr, failed.output


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--source", "{gone}"), 75, "cluster 'source': broker {gone} can't be reached: [Errno 111]"),
        (("--source", "{gone}", "--topics", "["), 2, "["),
        (("--source", "foo"), 2, "--source: must be host:port"),
    ],
)
def test_compare_looks_at_what_was_typed_before_it_connects(words: tuple[str, ...], status: int, said: str) -> None:
    gone = f"127.0.0.1:{free_port()}"
    failed = CliRunner().invoke(app, ["compare", "--target", gone, *(word.format(gone=gone) for word in words)])
    assert failed.exit_code == status and said.format(gone=gone) in failed.stderr, failed.output
    assert "source.bootstrap.servers" not in failed.stderr, "a key that nobody has typed"


def test_an_interruption_is_told() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    small = typer.Typer()
    small.command()(failures_reported(interrupted, interrupted="interrupted: nothing is lost"))
    told = CliRunner().invoke(small, [])
    assert told.exit_code == 130 and told.stderr == "interrupted: nothing is lost\n"

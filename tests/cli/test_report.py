"""``airmirror report`` as a person types it: its exit status, whose key signs, and what bad input is told."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from typer.testing import CliRunner

from airmirror.cli import report as cli_report
from airmirror.cli.main import app
from airmirror.cli.report import PASSWORD, signer_of
from airmirror.flows.prepare import open_flow
from airmirror.report import files
from airmirror.report.signing import BadKey
from airmirror_local.brokers import Broker
from support.deployment import Deployment
from support.flows import Mirror
from support.following import numbered
from support.topics import create_topic, produce

LINES = (
    "clusters = a, b\na.bootstrap.servers = one.invalid:9092\nb.bootstrap.servers = 127.0.0.1:1\na->b.enabled = true\n"
)


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--from", "yesterday"], 2, "no time of ISO 8601"),
        (["--from", "2026-11-02", "--to", "2026-11-01"], 2, "no moment lies between"),
        (["--from", "2026-11-02", "--to", "2026-11-02"], 2, "no moment lies between"),
        (["--flow", "a->c"], 2, "no flow 'a->c'"),
        ([], 75, "127.0.0.1:1"),
    ],
)
def test_bad_input_writes_nothing_and_says_what_is_wrong(
    options: list[str], status: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "mirror.properties").write_text(LINES)
    options += ["--config", str(tmp_path / "mirror.properties"), "--ledger", f"sqlite:///{tmp_path}/no.db"]
    failed = CliRunner().invoke(app, ["report", *options, "--write", str(tmp_path / "out")])
    assert failed.exit_code == status and said in failed.stderr, failed.output
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mirror.properties"]


def test_a_report_of_what_is_held_is_written_and_ends_with_one(east: Broker, west: Broker, tmp_path: Path) -> None:
    name = create_topic(east, f"orders-{uuid4().hex[:8]}")
    produce(east, name, numbered(20), partition=0)
    command = Deployment(tmp_path, east.bootstrap, west.bootstrap, name)
    with open_flow(command.file, command.flow, command.ledger) as opened:
        Mirror(east, west, name, opened).run()
    assert command("verify").exit_code == 0
    good = command("report", "--write", str(tmp_path / "good"))
    assert good.exit_code == 0 and (tmp_path / "good.json").exists(), good.output
    assert command("hold", "add", name, "--reason", "INC-7", "--by", "ada", "--yes").exit_code == 0
    held = command("report", "--write", str(tmp_path / "held"))
    assert held.exit_code == 1 and "1 of 1 partitions are not proven" in held.output, held.output
    files = tmp_path / "elsewhere", tmp_path / "held.json"
    assert json.loads(files[1].read_bytes())["after"]["file"] == "good.json", "the newest that lies beside it"
    files[0].mkdir()
    command("report", "--write", str(files[0] / "third"), "--after", str(files[1]))
    assert json.loads((files[0] / "third.json").read_bytes())["after"]["file"] == "held.json"


def test_the_word_of_a_key_is_taken_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, file = Ed25519PrivateKey.generate(), tmp_path / "key.pem"
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret-word")))
    monkeypatch.setenv(PASSWORD, "secret-word")
    assert signer_of(file) is not None and signer_of(None) is None
    monkeypatch.delenv(PASSWORD)
    with pytest.raises(BadKey):
        signer_of(file)


def test_a_check_on_the_clusters_reads_the_ledger_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def opened(_config: Path, _flow: str, ledger: str, *_more: object, **_how: object) -> None:
        asked.append(ledger)
        raise BadKey("k.pem", "enough was seen")

    stored = SimpleNamespace(content={"kind": "flow", "asked": {"flow": "a->b"}}, sha256="")
    monkeypatch.setattr(cli_report, "checked", lambda *_: ([], True))
    monkeypatch.setattr(files, "read_report", lambda _: stored)
    monkeypatch.setattr(cli_report, "opened_flow", opened)
    monkeypatch.setenv("AIRMIRROR_LEDGER", "sqlite:///mine.db")
    CliRunner().invoke(app, ["report", "check", "r.json", "--config", str(tmp_path)])
    assert asked == ["sqlite:///mine.db"]

"""A configuration file of a test's own, and the commands on it, run in this process."""

from __future__ import annotations

import uuid
from pathlib import Path

from typer.testing import CliRunner, Result

from airmirror.cli.main import app


class Deployment:
    """A configuration file of a flow with one topic, and commands on it."""

    def __init__(self, directory: Path, source: str, target: str, topics: str, **more: str) -> None:
        self.alias = f"c{uuid.uuid4().hex[:8]}"
        self.flow = f"{self.alias}->west"
        self.file = directory / "mirror.properties"
        lines = {
            "clusters": f"{self.alias}, west",
            f"{self.alias}.bootstrap.servers": source,
            "west.bootstrap.servers": target,
            f"{self.flow}.enabled": "true",
            f"{self.flow}.topics": topics,
            "replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "offset.storage.partitions": "3",
            "offset-syncs.topic.replication.factor": "1",
            "checkpoints.topic.replication.factor": "1",
        } | more
        self.file.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
        self.ledger = f"sqlite:///{directory / 'ledger.db'}"

    def __call__(self, *arguments: str, flow: bool = True) -> Result:
        options = ["--config", str(self.file)]
        if arguments[0] != "config":
            options += ["--ledger", self.ledger]
        if flow:
            options += ["--flow", self.flow]
        return CliRunner().invoke(app, [*arguments, *options])

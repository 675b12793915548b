"""``make transcripts``: the outputs that docs/disaster-recovery.md shows, of commands carried out on two small clusters."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

os.environ["COLUMNS"] = "130"  # before the commands' console is made

from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror_local.brokers import Broker, start_broker
from support import ROOT
from support.groups import commit
from support.topics import Record, create_topic, produce

PAGE = ROOT / "docs" / "disaster-recovery.md"
NAMES = {"east": "east-kafka:9092", "west": "west-kafka:9092"}
PROPERTIES = """clusters = east, west
east.bootstrap.servers = {east}
west.bootstrap.servers = {west}
east->west.enabled = true
east->west.topics = orders, payments
west->east.enabled = true
west->east.topics = nothing
replication.factor = 1
offset.storage.replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
"""
WHY = ("--by", "ada", "--yes", "--reason")


@dataclass(frozen=True)
class Commands:
    """Commands on a configuration in ``directory``; addresses and paths of this machine are replaced in what they say."""

    directory: Path
    hidden: dict[str, str]

    def __call__(self, *words: str, exits: int = 0) -> str:
        """What a command says, under its own line. Raises AssertionError where it ends with another status."""
        options = ("--flow", "east->west", "--config", str(self.directory / "mirror.properties"))
        ledger = ("--ledger", f"sqlite:///{self.directory / 'ledger.db'}")
        done = CliRunner().invoke(app, [*words, *options, *ledger])
        assert done.exit_code == exits, done.output
        said = f"$ {shlex.join(['airmirror', *words, '--flow', 'east->west'])}\n{done.output.strip()}"
        for found, shown in self.hidden.items():
            said = said.replace(found, shown)
        return re.sub(r"\$ airmirror .*?(?=\n)", lambda line: line[0].replace(f"{self.directory}/", ""), said)


def transcripts(directory: Path, east: Broker, west: Broker) -> dict[str, str]:
    """Carry a disaster out, from the rehearsal to the failback; what each command said, by the transcript's name."""
    hidden = {east.bootstrap: NAMES["east"], west.bootstrap: NAMES["west"], f"{directory}/": ""}
    command = Commands(directory, hidden)
    (directory / "mirror.properties").write_text(PROPERTIES.format(east=east.bootstrap, west=west.bootstrap))
    create_topic(east, "orders", partitions=3)
    create_topic(east, "payments")
    for number in range(3):
        _write(east, "orders", number, 400 + 37 * number)
    _write(east, "payments", 0, 250)
    commit(east, "billing", {("orders", 0): 400, ("orders", 1): 437, ("orders", 2): 460})
    commit(east, "audit", {("payments", 0): 250})
    command("failover", "run", "--way", "planned", *WHY, "a drill", "--write", str(directory / "drill"))
    command("failover", "undo", *WHY, "the drill is over")
    command("run-window", "--local")  # after which the ledger knows where groups stand
    _write(east, "payments", 0, 12)
    found = {"rehearsal": command("failover", "rehearse", "--write", str(directory / "rehearsal"))}
    east.kill()
    found["plan"] = command("failover", "plan", exits=1)
    place = str(directory / "failover")
    found["failover"] = command("failover", "run", "--way", "disaster", *WHY, "east burns, INC-7", "--write", place)
    for number in range(3):
        _write(west, "east.orders", number, 12 + 2 * number)
    commit(west, "billing", {("east.orders", number): 400 + 37 * number + 12 for number in range(3)})
    east.restart()
    found["failback-plan"] = command("failback", "plan", exits=1)
    found["rescue"] = command("failback", "run", "--step", "rescue", *WHY, "INC-7")
    command("failback", "run", "--step", "return", *WHY, "east is back")
    found["failback-undo"] = command("failback", "undo", *WHY, "not today")
    place = str(directory / "failback")
    found["failback"] = command("failback", "run", *WHY, "east is back, INC-7", "--write", place)
    return found


def _write(cluster: Broker, topic: str, partition: int, count: int) -> None:
    produce(cluster, topic, [Record(f"{topic} {number}".encode()) for number in range(count)], partition=partition)


def written(page: str, found: dict[str, str]) -> str:
    """The page with each block that follows ``<!-- transcript: NAME -->`` replaced. Raises KeyError for another name."""

    def block(marked: re.Match[str]) -> str:
        return f"<!-- transcript: {marked[1]} -->\n```\n{found[marked[1]]}\n```\n"

    return re.sub(r"<!-- transcript: ([a-z-]+) -->\n```\n.*?\n```\n", block, page, flags=re.DOTALL)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        started: list[Broker] = []
        try:
            started += [start_broker(Path(place), name, {"group.initial.rebalance.delay.ms": "0"}) for name in NAMES]
            found = transcripts(Path(place), *started)
        finally:
            for broker in started:
                broker.kill()
    PAGE.write_text(written(PAGE.read_text(), found))


if __name__ == "__main__":
    main()

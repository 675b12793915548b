"""``make transcripts``: the outputs that pages show, of commands carried out on two small clusters: a disaster, a migration, a
take-over from the real MirrorMaker 2.

A page's block after ``<!-- transcript: NAME -->`` is written anew.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ["COLUMNS"] = "130"  # before the commands' console is made

from typer.testing import CliRunner

from airmirror.cli.main import app
from airmirror_local.brokers import Broker, start_broker
from airmirror_local.mirrormaker import start_mirrormaker
from support import ROOT
from support.groups import commit
from support.mirrormaker import await_records
from support.topics import Record, create_topic, produce

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
MOVE = """replication.policy.class = IdentityReplicationPolicy
east->west.move.shop.topics = orders, payments
east->west.move.reverse = true
east->west.move.quiet.ms = 1000
"""
MIRRORMAKER = """west->east.emit.heartbeats.enabled = false
emit.heartbeats.enabled = false
west.offset.flush.interval.ms = 500
config.storage.replication.factor = 1
status.storage.replication.factor = 1
"""
WHY = ("--by", "ada", "--yes", "--reason")
Story = Callable[["Commands", Broker, Broker], dict[str, str]]


@dataclass(frozen=True)
class Commands:
    """Commands on a configuration in ``directory``; addresses and paths of this machine are replaced in what they say."""

    directory: Path
    hidden: dict[str, str]

    def __call__(self, *words: str, exits: int = 0) -> str:
        """What a command says, under its own line. Raises AssertionError where it ends with another status."""
        options = ("--flow", "east->west", "--config", str(self.configuration))
        ledger = ("--ledger", f"sqlite:///{self.directory / 'ledger.db'}")
        done = CliRunner().invoke(app, [*words, *options, *ledger])
        assert done.exit_code == exits, done.output
        said = f"$ {shlex.join(['airmirror', *words, '--flow', 'east->west'])}\n{done.output.strip()}"
        for found, shown in self.hidden.items():
            said = said.replace(found, shown)
        return said

    @property
    def configuration(self) -> Path:
        return self.directory / "mirror.properties"

    def configure(self, more: str = "") -> None:
        """Write the configuration, with further lines."""
        east, west, *_ = self.hidden
        self.configuration.write_text(PROPERTIES.format(east=east, west=west) + more)

    def place(self, name: str) -> str:
        """Where a command is to write; it is shown as the name alone."""
        return str(self.directory / name)


def disaster(command: Commands, east: Broker, west: Broker) -> dict[str, str]:
    """A source is killed, failed over, and comes back; what each command said, by the transcript's name."""
    command.configure()
    create_topic(east, "orders", partitions=2)
    create_topic(east, "payments")
    for number in range(2):
        _write(east, "orders", number, 400 + 37 * number)
    _write(east, "payments", 0, 250)
    commit(east, "billing", {("orders", 0): 400, ("orders", 1): 420})
    commit(east, "audit", {("payments", 0): 250})
    command("failover", "run", "--way", "planned", *WHY, "a drill", "--write", command.place("drill"))
    command("failover", "undo", *WHY, "the drill is over", "--write", command.place("undone"))
    command("run-window", "--local")  # after which the ledger knows where groups stand
    _write(east, "payments", 0, 12)
    east.kill()
    found = {"plan": command("failover", "plan")}
    place = command.place("failover")
    found["failover"] = command("failover", "run", "--way", "disaster", *WHY, "east burns, INC-7", "--write", place)
    for number in range(2):
        _write(west, "east.orders", number, 12 + 2 * number)
    commit(west, "billing", {("east.orders", number): 400 + 37 * number + 12 for number in range(2)})
    east.restart()
    found["failback-plan"] = command("failback", "plan", exits=1)
    return found


def move(command: Commands, east: Broker, west: Broker) -> dict[str, str]:
    """A move group is cut over, consumers first."""
    command.configure(MOVE)
    for topic in ("orders", "payments"):
        create_topic(east, topic, partitions=2)
        for number in range(2):
            _write(east, topic, number, 400 + 37 * number)
    commit(east, "billing", {("orders", 0): 400, ("orders", 1): 420})
    command("run-window", "--local")
    run = ("migration", "run", "--move", "shop", "--wait", "5", "--write", command.place("shop"), *WHY, "moving day")
    consumers = (word for step in ("mirror", "check_groups", "cut_over_consumers") for word in ("--step", step))
    producers = ("--step", "reverse", "--step", "cut_over_producers")
    command(*run, *consumers)
    return {"migration": command(*run, *producers)}


def takeover(command: Commands, east: Broker, west: Broker) -> dict[str, str]:
    """MirrorMaker 2 is taken over from, and handed back to."""
    command.configure(MIRRORMAKER)
    create_topic(east, "orders", partitions=2)
    for number in range(2):
        _write(east, "orders", number, 9_540)
    process = start_mirrormaker(command.configuration, command.directory)
    try:
        await_records(west, "east.orders", 2 * 9_540, process)
        process.stop()
        found = {"takeover": command("takeover", "run", *WHY, "it goes", "--write", command.place("takeover"))}
        for number in range(2):
            _write(east, "orders", number, 100)
        command("run-window", "--local")
        for number in range(2):
            _write(east, "orders", number, 100)
        process = start_mirrormaker(command.configuration, command.directory)
        found["check"] = command("handback", "plan", "--check")
    finally:
        process.kill()
    return found


PAGES: dict[str, Story] = {"disaster-recovery.md": disaster, "migration.md": move, "take-over.md": takeover}


def told(story: Story) -> dict[str, str]:
    """Carry a story out on two clusters of its own."""
    with tempfile.TemporaryDirectory() as place:
        started: list[Broker] = []
        try:
            started += [start_broker(Path(place), name, {"group.initial.rebalance.delay.ms": "0"}) for name in NAMES]
            hidden = {each.bootstrap: name for each, name in zip(started, NAMES.values(), strict=True)}
            return story(Commands(Path(place), hidden | {f"{place}/": "", "at 127.0.0.1,": "at mirror-1,"}), *started)
        finally:
            for broker in started:
                broker.kill()


def _write(cluster: Broker, topic: str, partition: int, count: int) -> None:
    produce(cluster, topic, [Record(f"{topic} {number}".encode()) for number in range(count)], partition=partition)


def written(page: str, found: dict[str, str]) -> str:
    """The page with each block that follows ``<!-- transcript: NAME -->`` replaced. Raises KeyError for another name."""

    def block(marked: re.Match[str]) -> str:
        return f"<!-- transcript: {marked[1]} -->\n```\n{found[marked[1]]}\n```\n"

    return re.sub(r"<!-- transcript: ([a-z-]+) -->\n```\n.*?\n```\n", block, page, flags=re.DOTALL)


if __name__ == "__main__":
    for name, story in PAGES.items():
        if name in (sys.argv[1:] or PAGES):
            page, found = ROOT / "docs" / name, told(story)
            page.write_text(written(page.read_text(), found))

"""The common parts of commands: their options, the console they print to, and the flow that they open."""

from __future__ import annotations

import getpass
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from airmirror.cli import running
from airmirror.cli.tables import safe
from airmirror.config import Configuration, ConnectionNeeded, Flow, connections_of, properties
from airmirror.config.errors import ConfigurationError, Problem
from airmirror.flows.prepare import Opened, open_flow
from airmirror.ledger import Ledger, LedgerUnavailable
from airmirror.topics.sound import ValidConfiguration, sound

DEFAULT_CONFIG = running.configuration() if running.configuration().exists() else Path("include/mirror.properties")
DEFAULT_LEDGER = "sqlite:///.local/ledger.db"
DEFAULT_SPARK = "sc://127.0.0.1:15002"
LEDGER = "AIRMIRROR_LEDGER"  # the environment's name for it, and the key in the file of secrets

Config = Annotated[Path, typer.Option("--config", envvar="AIRMIRROR_CONFIG", help="The mirror.properties file.")]
FlowName = Annotated[str, typer.Option("--flow", help="The flow, as 'east->west'; by default the only one enabled.")]
_OF_STACK = ", or that of the stack of `airmirror up` as long as it runs"
LedgerUrl = Annotated[
    str,
    typer.Option(
        "--ledger", envvar=LEDGER, help="The ledger's SQLAlchemy URL.", show_default=f"{DEFAULT_LEDGER}{_OF_STACK}"
    ),
]
Spark = Annotated[
    str,
    typer.Option(
        envvar="AIRMIRROR_SPARK", help="The Spark Connect server.", show_default=f"{DEFAULT_SPARK}{_OF_STACK}"
    ),
]
Secrets = Annotated[
    Path | None,
    typer.Option(
        "--secrets",
        envvar="AIRMIRROR_SECRETS",
        help="A properties file that overrides the configuration. For clusters that it configures, Airflow connections are "
        f"ignored. {LEDGER} may be in it too.",
    ),
]
Expectations = Annotated[
    Path | None,
    typer.Option(
        envvar="AIRMIRROR_EXPECTATIONS",
        help="A directory of expectations of your own; include/expectations by default, if it is there.",
    ),
]


def new_identifier() -> str:
    """An id for a window: the time, and six letters by which two of one second differ."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:6]}"


def whoami() -> str:
    """The user and host, as they stand in a decision; by its number a user that the machine does not know."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()}"


By = Annotated[
    str, typer.Option("--by", help="Who decides; user@host if not given.", default_factory=whoami, show_default=False)
]
Reason = Annotated[str, typer.Option("--reason", help="Why; it is kept with what is decided.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it; else nothing is written.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

console = Console()
if not console.is_terminal:
    console.width = 10_000  # into a file or a pipe nothing is folded


@contextmanager
def telling(console: Console, first: str = "") -> Iterator[Callable[[str], None]]:
    """A line on a terminal for what goes on now, and what changes it. Names in it are data, and no markup."""
    with console.status(Text(first)) as status:
        yield lambda phase: status.update(Text(safe(phase)))


@contextmanager
def opened_flow(config: Path, flow: str, ledger: str, secrets: Path | None, *, shows: bool = False) -> Iterator[Opened]:
    """The flow of a command, with what its clusters' Airflow connections hold. Raises ConnectionNeeded, BadConnection.

    ``shows``: the command only looks. Where there is no ledger yet it makes none, and reads everything from Kafka.
    """
    overrides = properties.overrides(secrets)
    ledger = overrides.pop(LEDGER, "") or ledger
    if ledger == DEFAULT_LEDGER and running.is_stack(config):
        ledger = running.ledger()
    with ExitStack() as stack:
        if shows and _is_missing(ledger):
            ledger = f"sqlite:///{stack.enter_context(TemporaryDirectory(prefix='airmirror-'))}/ledger.db"
        opened = stack.enter_context(open_flow(config, flow, ledger, overrides))
        yield connected(opened)


@contextmanager
def ledger_there(ledger: str) -> Iterator[Ledger]:
    """The ledger of a command that names no flow; it makes none. Raises LedgerUnavailable."""
    if ledger == DEFAULT_LEDGER and running.configuration().exists():
        ledger = running.ledger()
    if _is_missing(ledger):
        raise LedgerUnavailable(ledger, f"there is none; name it with --ledger, or by {LEDGER}")
    with Ledger(ledger) as opened:
        yield opened


def spark_of(config: Path, spark: str) -> str:
    """The Spark Connect server that is meant: of the stack that `airmirror up` has started its own, with the token."""
    return running.spark_file().read_text() if spark == DEFAULT_SPARK and running.is_stack(config) else spark


def expectations_in(config: Path, given: Path | None) -> Path | None:
    """The directory of expectations that is meant: of the stack that `airmirror up` has started the one of its Airflow."""
    from airmirror.quality.suites import default_directory

    return default_directory(running.HOME) if given is None and running.is_stack(config) else given


def loaded(config: Path, secrets: Path | None) -> ValidConfiguration:
    """The configuration, with the file of secrets over it, and what is wrong with it."""
    overrides = properties.overrides(secrets)
    overrides.pop(LEDGER, None)
    return sound(config, overrides)


def connected(opened: Opened) -> Opened:
    """With what Airflow's connections hold; Airflow is imported only where a cluster that is asked for names one."""
    flow, configuration = with_connections(opened.configuration, opened.flow), opened.configuration
    beside = (each for each in configuration.enabled if each.target.alias == flow.target.alias)
    if connections_of(configuration).keys() & {each.source.alias for each in beside}:
        _set_up_airflow(configuration, flow)
        from airmirror.on_airflow.connections import with_neighbours

        configuration = with_neighbours(configuration, flow)
    return replace(opened, flow=flow, configuration=configuration)


def with_connections(configuration: Configuration, flow: Flow) -> Flow:
    """The flow with what its clusters' connections hold. Raises ConnectionNeeded, BadConnection."""
    if not connections_of(configuration).keys() & {flow.source.alias, flow.target.alias}:
        return flow
    _set_up_airflow(configuration, flow)
    from airmirror.on_airflow import connections

    return connections.with_connections(configuration, flow)


def _set_up_airflow(configuration: Configuration, flow: Flow) -> None:
    """Let Airflow look up connections as its own commands do: in the environment, its secrets backend, its database.

    Where no Airflow is set up it reads the environment only, and makes no home. Raises ConnectionNeeded.
    """
    connections = connections_of(configuration)
    for alias in (flow.source.alias, flow.target.alias):
        if alias in connections and not finds_connection(connections[alias]):
            raise ConnectionNeeded(alias, connections[alias])


def finds_connection(conn_id: str) -> bool:
    """Whether there is an Airflow to ask for a connection, which is set up to be asked then; or the environment has it."""
    if os.environ.get("AIRFLOW_HOME") or Path("~/airflow/airflow.cfg").expanduser().exists():
        os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
        return True
    os.environ.setdefault("_AIRFLOW__AS_LIBRARY", "1")
    return f"AIRFLOW_CONN_{conn_id.upper()}" in os.environ


def _is_missing(ledger: str) -> bool:
    """Return whether it is a SQLite file that does not exist."""
    file = ledger.removeprefix("sqlite:///")
    return file != ledger and bool(file) and not Path(file).exists()


def time_of(option: str, text: str) -> int | None:
    """Epoch milliseconds of an ISO 8601 time, UTC by default; None of an empty text. Raises ConfigurationError."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        wrong = f"{option} {text!r} is no time of ISO 8601, for example 2026-11-21T06:00:00Z"
        raise ConfigurationError("airmirror", (Problem(None, "", wrong),)) from error
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)

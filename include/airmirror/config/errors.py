"""The errors of a configuration."""

from __future__ import annotations

from dataclasses import dataclass

from airmirror.errors import AirmirrorError


@dataclass(frozen=True)
class Problem:
    """One thing wrong (as a note: worth knowing) in a file. ``line`` counts from 1; None where no line is to blame."""

    line: int | None
    key: str
    message: str
    closest: str | None = None

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        subject = f"{self.key}: " if self.key else ""
        hint = f"; the closest known one is {self.closest}" if self.closest else ""
        return f"{where}{subject}{self.message}{hint}"


class ConfigurationError(AirmirrorError, bad_input=True):
    """Everything that is wrong with one configuration file, in the order of its lines."""

    path: str
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.path}: {self.problems[0]}"
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{self.path}: {len(self.problems)} problems{lines}"


class UnknownFlow(AirmirrorError, bad_input=True):
    """A flow that the configuration does not name."""

    path: str
    flow: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path}: no flow {self.flow!r}; the flows it names: {', '.join(self.known) or 'none'}"


class UnknownComparison(AirmirrorError, bad_input=True):
    """A comparison that the configuration does not name, or that something is wrong with."""

    path: str
    name: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known = ", ".join(self.known) or "none"
        return f"{self.path}: no comparison {self.name!r} that can run (compare.{self.name}.…); those that can: {known}"


class FlowNotNamed(AirmirrorError, bad_input=True):
    """No flow was named, and the configuration does not enable exactly one."""

    path: str
    enabled: tuple[str, ...]

    def __str__(self) -> str:
        if not self.enabled:
            return f"{self.path}: no flow is enabled; enable one with a line like east->west.enabled = true"
        return f"{self.path}: say which flow, with --flow: {', '.join(map(repr, self.enabled))} are enabled"


class ConnectionNeeded(AirmirrorError, bad_input=True):
    """A cluster whose settings are in an Airflow connection, where no Airflow is set up to read it from."""

    cluster: str
    conn_id: str

    def __str__(self) -> str:
        return (
            f"cluster {self.cluster!r}: its settings are in Airflow connection {self.conn_id!r} "
            f"({self.cluster}.airflow.conn.id), and Airflow is not set up here: set AIRFLOW_HOME, or "
            f"AIRFLOW_CONN_{self.conn_id.upper()}, or give a file by --secrets that holds lines like "
            f"{self.cluster}.bootstrap.servers = …"
        )


class FlowNotEnabled(AirmirrorError, bad_input=True):
    """A flow that the configuration names but does not enable."""

    path: str
    flow: str
    says = "{0.path}: flow {0.flow!r} is not enabled; set {0.flow}.enabled = true to replicate it"

"""``airmirror config``: everything that is wrong with a configuration at once, and what counts for each flow.

``--from``: what Strimzi or Connect have, line by line as a properties file, and the file itself.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from airmirror.cli import show
from airmirror.cli.clients import clients, explain_clients
from airmirror.cli.failures import failures_reported
from airmirror.cli.options import (
    DEFAULT_CONFIG,
    AsJson,
    Config,
    Expectations,
    Secrets,
    console,
    expectations_in,
    finds_connection,
    loaded,
)
from airmirror.cli.tables import DOUBTFUL, line, print_all, print_json, table
from airmirror.config import (
    Configuration,
    ConfigurationError,
    Problem,
    explain,
    properties,
    resolve,
    translated,
)
from airmirror.config.explain import problem_of
from airmirror.config.foreign import translation as foreign
from airmirror.config.tuning import advised
from airmirror.errors import AirmirrorError


@failures_reported
def config(
    key: Annotated[str, typer.Argument(help="With --explain: only this key, or those that begin so.")] = "",
    config: Config = DEFAULT_CONFIG,
    explain_keys: Annotated[bool, typer.Option("--explain", help="List every key with what it does here.")] = False,
    expectations: Expectations = None,
    secrets: Secrets = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Translate a Strimzi KafkaMirrorMaker2, or Connect's JSON of connectors, line by line."
        ),
    ] = None,
    write: Annotated[Path | None, typer.Option(help="With --from: write it as a new properties file.")] = None,
    secrets_from: Annotated[
        str | None,
        typer.Option(
            envvar="AIRMIRROR_SECRETS_FROM",
            help="With --from: where Kubernetes' secrets are: files:<directory> (a directory a secret, a file a key), "
            "environment (<SECRET>_<KEY>), or airflow (a connection a cluster).",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the configuration and the gate's expectations, and show what counts for each flow, and the line it comes from.
    Of keys by which MirrorMaker 2 is tuned it says what takes their place (docs/tuning.md). It shows all errors at once; exit
    status 2.
    """
    if from_file is not None:
        show_translation(from_file, write, secrets_from, as_json)
        return
    if explain_keys or key:
        _explain(key, as_json)
        return
    checked = loaded(config, secrets)
    configuration = checked.configuration
    kinds, unfit = _spark_connections(checked.whole)
    refused, unused = clients(checked.whole)
    problems = [*checked.problems, *unfit, *refused, *_of_dags(checked.whole)]
    problems += _expectations(expectations_in(config, expectations))
    if problems:
        problems.sort(key=lambda each: (each.line is None, each.line))
        raise ConfigurationError(str(config), tuple(problems))
    values = {name: resolve(configuration, name) for name in configuration.flows}
    if as_json:
        print_json(console, {name: [asdict(row) for row in effective] for name, effective in values.items()})
        return
    notes = [line("note", note, DOUBTFUL) for note in (*configuration.notes, *unused)]
    flows: list[Text | str] = []
    for name, effective in values.items():
        flows += [*show.values(name, configuration.flows[name].enabled, effective, kinds), ""]
    print_all(console, *notes, *flows, *(line("tuning", each, "") for each in advised(configuration)))


def _explain(key: str, as_json: bool) -> None:
    rows, of_clients = explain(), explain_clients()
    if key:
        every = [*rows, *of_clients]
        bare = _bare(key, [row.name for row in every])
        exact = [row for row in every if row.name == bare]
        rows, of_clients = exact or [row for row in every if row.name.startswith(bare)], []
    if as_json:
        print_json(console, [asdict(row) for row in (*rows, *of_clients)])
    else:
        print_all(console, *show.keys(rows, of_clients))


def _bare(key: str, known: list[str]) -> str:
    """The key without the alias, flow or role before it. Raises typer.BadParameter where there is none like it."""
    parts = key.split(".")
    for start in range(len(parts)):
        bare = ".".join(parts[start:])
        if any(name.startswith(bare) for name in known):
            return bare
    closest = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    raise typer.BadParameter(f"no key {key!r}" + (f"; the closest known one is {closest[0]}" if closest else ""))


def _spark_connections(configuration: Configuration) -> tuple[dict[str, str], list[Problem]]:
    """How windows run by each Spark connection, and which can't run them; Airflow is loaded only where it can be asked."""
    kinds, problems = {}, []
    for flow in configuration.enabled:
        conn_id = flow.settings.spark_conn_id
        if not finds_connection(conn_id):
            kinds[conn_id] = "its type is Airflow's to know: set AIRFLOW_HOME"
            continue
        from airmirror.on_airflow.tasks.spark import CONNECT, kind_of

        try:
            kind = kind_of(conn_id)
        except AirmirrorError as error:
            problems.append(problem_of(configuration, flow.name, "spark.conn.id", error))
        else:
            kinds[conn_id] = "Spark Connect" if kind == CONNECT else f"spark-submit, type {kind}"
    return kinds, problems


def _of_dags(configuration: Configuration) -> list[Problem]:
    """What no DAG can be made with; Airflow is loaded only where a flow has any of it."""
    settings = [flow.settings for flow in configuration.enabled]
    if not any(
        each.on_failure_notifier or (each.failover_rehearsal_schedule and each.move_rehearsal_schedule)
        for each in settings
    ):
        return []
    from airmirror.on_airflow.dags.all_dags import unfit_for_dags

    return list(unfit_for_dags(configuration))


def _expectations(given: Path | None) -> Iterator[Problem]:
    """Yield the problems of the gate's suites; Great Expectations is loaded only for suites of users' own."""
    from airmirror.quality.suites import OWN, BadExpectations, check_suites, default_directory, load_suites

    directory = given or default_directory()
    try:
        check_suites([suite for suite in load_suites(directory) if Path(suite.path).parent != OWN])
    except BadExpectations as error:
        for problem in error.problems:
            yield Problem(None, str(directory), problem)


SAME = "the same"


def show_translation(file: Path, write: Path | None, secrets_from: str | None, as_json: bool) -> None:
    """Print every setting with its line in ``file`` and its effect here; write them unless something must be said otherwise.

    Raises ConfigurationError with all that can't be done, before anything is written.
    """
    text = properties.read(file)
    if not foreign.is_foreign(text):
        raise typer.BadParameter(
            f"{file} is no resource of Strimzi and no JSON of Connect's connectors", param_hint="--from"
        )
    found = translated(text, str(file), secrets_from)
    if found.problems:
        raise ConfigurationError(str(file), found.problems)
    remarks: dict[str, str] = {}
    for note in found.notes:
        remarks[note.key] = f"{remarks[note.key]}; {note.message}" if note.key in remarks else note.message
    rows = [(setting.line, setting.key, setting.shown, remarks.get(setting.key, SAME)) for setting in found.settings]
    keys = {setting.key for setting in found.settings}
    rows += [(note.line, note.key, "", note.message) for note in found.notes if note.key not in keys]
    rows.sort(key=lambda row: row[0] or 0)
    if write is not None:
        _write(write, properties.render(found.settings, str(file), remarks))
    if as_json:
        names = ("line", "key", "value", "here")
        print_json(console, [dict(zip(names, row, strict=True)) for row in rows])
        return
    painted = [(str(at), key, value, here if here == SAME else Text(here, DOUBTFUL)) for at, key, value, here in rows]
    print_all(console, table(str(file), ("line", "mirror.properties", "value", "here"), painted))
    if write is not None:
        print_all(
            console, f"Written to {write}. To look at what counts for each flow: airmirror config --config {write}"
        )


def _write(file: Path, text: str) -> None:
    """A new file that nobody else may read: there may be passwords in it. Raises typer.BadParameter where there is one."""
    try:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="iso-8859-1") as written:
            written.write(text)
    except OSError as error:
        raise typer.BadParameter(f"{file} can't be written: {error.strerror}", param_hint="--write") from error

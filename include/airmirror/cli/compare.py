"""``airmirror compare``: whether one cluster holds what another holds, whoever copied it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from airmirror.cli.failures import BAD_INPUT, NOT_VERIFIED, failures_reported
from airmirror.cli.options import AsJson, console, time_of
from airmirror.cli.report import KeyFile, signer_of
from airmirror.cli.tables import MOST_ROWS, print_all, print_json, safe, table
from airmirror.config import Cluster
from airmirror.config.errors import ConfigurationError, Problem
from airmirror.config.properties import overrides
from airmirror.config.values import check_client

SERVERS = "bootstrap.servers"
MOST_DIFFERENCES = 20  # shown of a partition; --json has all

Source = Annotated[str, typer.Option("--source", help="The source's bootstrap servers, HOST:PORT.")]
Target = Annotated[str, typer.Option("--target", help="The target's bootstrap servers, HOST:PORT.")]
Names = Annotated[str, typer.Option("--topics", help="Names and Java patterns of the source's topics, with commas.")]
Rename = Annotated[
    str, typer.Option(help="The target's topic for a source's: 'east.{topic}'; {topic#east.}: without that beginning.")
]
SettingsFile = Annotated[Path | None, typer.Option(help="A file of this side's Kafka client settings (TLS, SASL).")]


@partial(failures_reported, status=BAD_INPUT)  # 1 says that something differs
def compare(
    source: Source = "",
    target: Target = "",
    topics: Names = ".*",
    exclude: Annotated[str, typer.Option(help="Topics of the source to leave out.")] = "",
    rename: Rename = "{topic}",
    from_time: Annotated[str, typer.Option("--from", help="Only records from this time on: ISO 8601.")] = "",
    to_time: Annotated[str, typer.Option("--to", help="Only records before this time: ISO 8601.")] = "",
    source_config: SettingsFile = None,
    target_config: SettingsFile = None,
    sample: Annotated[
        str,
        typer.Option(help="Compare only this share of each partition, 0.5% or 10%, or this many ranges of each, 20."),
    ] = "",
    seed: Annotated[int, typer.Option(help="The choice of --sample: the same seed chooses the same ranges.")] = 1,
    spark: Annotated[
        str,
        typer.Option(help="Compare in tasks of this Spark Connect server, sc://HOST:PORT; by default in this process."),
    ] = "",
    local: Annotated[bool, typer.Option("--local", help="Compare in tasks of Spark in this process.")] = False,
    groups: Annotated[str, typer.Option(help="What these groups would skip or read again: names, Java patterns.")] = "",
    source_alias: Annotated[
        str, typer.Option(help="The source's alias in MirrorMaker 2, to read its checkpoints for --groups.")
    ] = "",
    ignore_timestamps: Annotated[bool, typer.Option("--ignore-timestamps", help="Timestamps may differ.")] = False,
    uncommitted: Annotated[
        bool, typer.Option("--uncommitted", help="Compare records of open and aborted transactions too.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(help="Write the result to PATH.html and PATH.json (airmirror report check checks them)."),
    ] = None,
    key: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare topics of two clusters record by record, whoever copied them; nothing is written to Kafka.

    Exit status: 0 nothing differs in what was compared (with --sample that is not everything), 1 something does, or an open
    transaction keeps it back, 2 bad input, or a cluster that does not let this user read, 75 a cluster that does not answer:
    try again.
    """
    from airmirror.evidence.asking import ComparisonRequest, sample_of
    from airmirror.evidence.compared_report import compared_report
    from airmirror.evidence.mirrors import compare_clusters
    from airmirror.evidence.positions import moves
    from airmirror.report.files import write_evidence

    asked = ComparisonRequest(
        topics=_names(topics),
        exclude=_names(exclude),
        rename=rename,
        first_ms=time_of("--from", from_time),
        end_ms=time_of("--to", to_time),
        times=not ignore_timestamps,
        is_committed=not uncommitted,
        sample=sample_of(sample, seed),
    )
    if groups and asked.sample is not None:
        raise _bad("--groups needs all records: a sample does not tell what a group would skip")
    signs = signer_of(key)
    here, there = _cluster("source", source, source_config), _cluster("target", target, target_config)
    _look(asked, here, there, source_alias if groups else "")
    with console.status("comparing both logs") as status, _executing(here, there, asked, spark, local) as execute:
        rows = compare_clusters(
            here, there, asked, tell=lambda topic: status.update(f"comparing {safe(topic)}"), execute=execute
        )
        moved = moves(here, there, rows, _names(groups), source_alias) if groups else []
    if report is not None:
        write_evidence(compared_report(here, there, asked, rows, moved), report, signs)
    if as_json:
        print_json(console, _plain(asked, rows, moved))
    else:
        _show(asked, rows, moved)
    if not all(row.passes for row in rows):
        raise typer.Exit(NOT_VERIFIED)


def _executing(source: Cluster, target: Cluster, asked: Any, spark: str, local: bool) -> AbstractContextManager[Any]:
    """The function that compares parts on Spark; None: they are compared one after the other, here."""
    if not spark and not local:
        return nullcontext()
    if spark and not spark.startswith("sc://"):
        raise _bad(f"--spark {spark}: a Spark Connect server is named like sc://HOST:PORT; or say --local")
    from airmirror.on_spark.comparing import on_spark

    return on_spark(source, target, asked.view, spark or None)


def _plain(asked: Any, rows: Sequence[Any], moved: Sequence[Any]) -> dict[str, Any]:
    """For programs. ``is_equal`` is null where a sample has shown no difference, or an open transaction keeps something back."""
    differs, is_whole = any(row.differs for row in rows), all(row.is_whole for row in rows)
    return {
        "is_equal": None if not differs and not is_whole else not differs,
        "sample": {"of": str(asked.sample), "seed": asked.sample.seed} if asked.sample else None,
        "partitions": [row.as_dict() for row in rows],
        "groups": [move.as_dict() for move in moved],
    }


def _look(asked: Any, source: Cluster, target: Cluster, alias: str) -> None:
    """Look at the patterns, then whether both clusters answer: librdkafka says so late, and hears no interruption meanwhile.
    A wrong ``alias`` of checkpoints is told now too, and not after hours.

    Raises InvalidPattern, BrokerUnreachable, NoCheckpoints.
    """
    from airmirror.clusters.protocol.routes import Routes
    from airmirror.evidence.parts import CLIENT
    from airmirror.evidence.positions import checkpoints
    from airmirror.naming import TopicFilter

    for names in (asked.topics, asked.exclude):
        TopicFilter(names, ()).matches("")
    for cluster in (source, target):
        with console.status(f"connecting to the {cluster.alias}"), Routes(cluster, CLIENT) as routes:
            routes.refresh([])
    checkpoints(target, alias, "")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _cluster(side: str, servers: str, file: Path | None) -> Cluster:
    """One side by its address and its file of client settings. Raises ConfigurationError."""
    given = overrides(file)
    in_file = given.pop(SERVERS, "")
    addresses = _names(servers or in_file)
    if not addresses:
        raise _bad(f"where is the {side}? Give --{side} HOST:PORT, or --{side}-config FILE with {SERVERS}")
    try:
        check_client(SERVERS, ",".join(addresses))
    except ValueError as error:
        raise _bad(f"--{side}: {error}") from error
    return Cluster(side, addresses, given)


def _bad(what: str) -> ConfigurationError:
    return ConfigurationError("airmirror compare", (Problem(None, "", what),))


def _show(asked: Any, rows: Sequence[Any], moved: Sequence[Any]) -> None:
    from airmirror.evidence.compared_report import verdict
    from airmirror.evidence.found import Kind
    from airmirror.evidence.rows import totals

    found = totals(rows)
    kinds = [kind for kind in Kind if found[kind] or kind is Kind.EQUAL]
    cells = [
        (
            row.topic,
            row.remote_topic,
            row.partition if row.partition >= 0 else "all",
            *(row.counts.get(kind, 0) for kind in kinds),
        )
        for row in rows
    ]
    columns = ("topic", "on the target", ">partition", *(f">{kind}" for kind in kinds))
    lines = [line for row in rows[:MOST_ROWS] for line in _lines(row)] + [_moved(move) for move in moved]
    if asked.sample is None:
        equal = sum(row.is_equal for row in rows)
        lines.append(f"{equal} of {len(rows)} partitions are equal: {found[Kind.EQUAL]:,} records.")
    else:
        ranges = sum(len(row.ranges) for row in rows)
        lines.append(f"{verdict(rows)} ({asked.sample}, seed {asked.sample.seed}: {ranges} ranges, named by --json)")
    print_all(console, table("records", columns, cells), *map(safe, lines))


def _lines(row: Any) -> list[str]:
    """The differences of a partition, and how sure they are."""
    where = f"{row.topic}-{row.partition}" if row.partition >= 0 else row.topic
    lines = [f"{where}: {row.error}"] if row.error else []
    for each in row.differences[:MOST_DIFFERENCES]:
        sides = [
            f"{side} {first}" + (f" to {first + each.count - 1}" if each.count > 1 else "")
            for side, first in (("source", each.source_offset), ("target", each.target_offset))
            if first >= 0
        ]
        parts = f" ({', '.join(each.parts)})" if each.parts else ""
        lines.append(f"{where}: {each.kind}{parts}: {', '.join(sides)}")
    if len(row.differences) > MOST_DIFFERENCES:
        lines.append(f"{where}: {len(row.differences) - MOST_DIFFERENCES} more differences: use --json")
    return lines + [f"{where}: note: {note}" for note in row.notes]


def _moved(move: Any) -> str:
    where = f"group {move.group}, {move.topic}-{move.partition}"
    if move.skipped < 0 and move.target_position < 0:
        return f"{where}: its topic was compared by key, which does not tell what it would skip"
    if move.target_position < 0:
        return f"{where}: no position on the target; on the source {move.source_position}"
    where += f": from {move.source_position} to {move.target_position} ({move.by})"
    if move.skipped < 0:
        return f"{where}: too many differences to tell what it would skip"
    return f"{where}: {move.skipped:,} records skipped, {move.again:,} read again"

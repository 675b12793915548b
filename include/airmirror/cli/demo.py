"""``airmirror demo``: two clusters and Spark on this machine, real records, two windows while more arrive, the proof."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from airmirror.cli import show
from airmirror.config import parse
from airmirror.flows.prepare import Opened, prepare
from airmirror.flows.verification import ComparedPartition, compare_all
from airmirror.ledger import Ledger
from airmirror.on_spark.windows import run
from airmirror.windows.window import WindowResult
from airmirror_local.brokers import Broker, start_broker
from airmirror_local.jars import LOCAL
from airmirror_local.processes import ProcessFailed
from airmirror_local.records import create_topics, keep_producing, load
from airmirror_local.spark_connect import ConnectServer, start_connect_server

FLOW = "east->west"
CONFIGURATION = """
clusters = east, west
east.bootstrap.servers = {east}
west.bootstrap.servers = {west}
east->west.enabled = true
east->west.topics = .*
replication.factor = 1
offset.storage.replication.factor = 1
offset-syncs.topic.replication.factor = 1
"""


def run_demo(console: Console, seconds: int) -> int:
    """The exit status: 0 when every window was verified and both logs are equal. Leaves nothing running."""
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="demo-", dir=LOCAL))
    try:
        with ExitStack() as stack, _progress(console) as progress:
            results, compared, arrived = _mirror(stack, progress, directory, seconds)
    except ProcessFailed as failed:
        console.print(f"[red]failed[/] {failed}", highlight=False)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    console.print(show.windows(results))
    for result in results:
        for line in show.problems(result, ()):
            console.print(line)
    equal = sum(row.records for row in compared)
    different = [row for row in compared if row.error]
    console.print(
        f"{arrived:,} records arrived while the windows ran. Both logs were read again and compared, record by record: "
        f"{equal:,} equal, {len(different)} partitions with a difference. Everything is stopped."
    )
    copied = sum(result.copied for result in results)
    return 0 if all(result.is_verified for result in results) and not different and equal == copied else 1


def _mirror(
    stack: ExitStack, progress: Progress, directory: Path, seconds: int
) -> tuple[list[WindowResult], list[ComparedPartition], int]:
    with _step(progress, "starting cluster east"):
        east: Broker = start_broker(directory, "east")
        stack.callback(east.kill)
    with _step(progress, "starting cluster west"):
        west: Broker = start_broker(directory, "west")
        stack.callback(west.kill)
    with _step(progress, "starting Spark Connect"):
        spark: ConnectServer = start_connect_server(directory / "spark")
        stack.callback(spark.stop)
    with _step(progress, "loading real records into east"):
        create_topics(east.bootstrap)
        load(east.bootstrap, share=0.9)
    configuration = parse(CONFIGURATION.format(east=east.bootstrap, west=west.bootstrap), "demo")
    ledger = Ledger(f"sqlite:///{directory / 'ledger.db'}")
    stack.callback(ledger.close)
    opened = Opened(configuration, configuration.flow(FLOW), ledger.flow(FLOW))
    results = []
    with keep_producing(east.bootstrap, share=0.9) as arrivals:
        for number in (1, 2):
            begun = time.monotonic()
            with _step(progress, f"window {number}"):
                results.append(run(prepare(opened), spark.url, f"demo-{number}"))
            if number == 1:
                with _step(progress, "more records arrive"):
                    arrivals.wait(max(0.0, seconds / 2 - (time.monotonic() - begun)))
    with _step(progress, "comparing both logs, record by record"):
        compared = compare_all(opened, [])
    return results, compared, arrivals.count


@contextmanager
def _step(progress: Progress, name: str) -> Iterator[None]:
    task = progress.add_task(name, total=1)
    yield
    progress.update(task, completed=1)


def _progress(console: Console) -> Progress:
    columns = (SpinnerColumn(finished_text="[green]✓[/]"), TextColumn("{task.description}"), TimeElapsedColumn())
    return Progress(*columns, console=console)

"""A real Kafka Streams application that counts words: compiled once, started, asked for its state, and stopped."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror_local.brokers import LOGGING
from airmirror_local.jars import KAFKA_VERSION, classpath, resolve
from airmirror_local.java import find_java
from support import ROOT
from support.needs import javac
from support.topics import Cluster, bootstrap

SECONDS = 180.0
SOURCE = ROOT / "tests/streams/WordCount.java"
SETTINGS = {
    "processing.guarantee": "exactly_once_v2",
    "commit.interval.ms": "100",
    "repartition.purge.interval.ms": "300",  # Streams deletes what was handled, all the time
    "statestore.cache.max.bytes": "0",
    "auto.offset.reset": "earliest",
}


@dataclass(frozen=True)
class WordCount:
    """The application while it runs."""

    process: subprocess.Popen[str]

    def state(self) -> Counter[str]:
        """What its store has counted, as far as it may be asked now."""
        found = self._asked("state").removeprefix("STATE ").strip()
        pairs = (each.rsplit("=", 1) for each in found.split())
        return Counter({word: int(count) for word, count in pairs})

    def await_words(self, least: int) -> Counter[str]:
        """Wait until it has counted so many words, or more."""
        for attempt in Retrying(
            retry=retry_if_exception_type(AssertionError),
            wait=wait_fixed(0.1),
            stop=stop_after_delay(SECONDS),
            reraise=True,
        ):
            with attempt:
                found = self.state()
                assert found.total() >= least, found.total()
        return found

    def _asked(self, question: str) -> str:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{question}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "it has ended"
        return line


def compiled(directory: Path) -> str:
    """The class path with the application; skips where there is only a JRE."""
    compiler = javac()
    jars = resolve(version=KAFKA_VERSION, modules=ROOT / "tests/support/kafka-streams.ivy.xml")
    path = f"{directory}:{jars}/*:{classpath()}"
    subprocess.run([str(compiler), "-cp", path, "-d", directory, SOURCE], check=True)
    return path


@contextmanager
def word_count(
    path: str, cluster: Cluster, application: str, directory: Path, topics: tuple[str, str], protocol: str = "classic"
) -> Iterator[WordCount]:
    """The application on a cluster, with a state directory of its own; stopped cleanly in the end, or killed. ``protocol``: its
    group's."""
    properties = SETTINGS | {
        "application.id": application,
        "bootstrap.servers": bootstrap(cluster),
        "state.dir": str(directory),
        "group.protocol": protocol,
    }
    command = [str(find_java()), "-Xmx256m", *LOGGING, "-cp", path, "WordCount", *topics]
    command += [f"{key}={value}" for key, value in properties.items()]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield WordCount(process)
        output, _ = process.communicate("stop\n", timeout=SECONDS)
        assert output.strip().endswith("CLOSED")
    finally:
        process.kill()
        process.wait()

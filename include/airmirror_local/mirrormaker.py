"""A MirrorMaker 2 in dedicated mode, as a plain process."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from airmirror_local.brokers import LOGGING
from airmirror_local.jars import KAFKA_VERSION, classpath
from airmirror_local.java import find_java
from airmirror_local.processes import Process, start_process

JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # it starts soon, and copies enough


def start_mirrormaker(configuration: Path, directory: Path, version: str = KAFKA_VERSION) -> Process:
    """Start it, of a ``version`` of Kafka, with a properties file; its log is in ``directory``. Raises ProcessFailed."""
    command = [str(find_java()), *JAVA, *LOGGING, "-cp", classpath(version=version)]
    command += ["org.apache.kafka.connect.mirror.MirrorMaker", str(configuration)]
    return start_process("MirrorMaker 2", command, directory / f"mirrormaker-{uuid4().hex[:8]}.log")

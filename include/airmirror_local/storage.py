"""Formatted storage of a node without a Java process for it: a version of Kafka formats a template once, nodes get copies.

A template lies in ``.local/storage`` by version and features. What a node has of its own is in ``meta.properties``: its
id, its cluster's, and its directory's (since Kafka 3.7). The rest, the levels of features, is the same for all nodes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from airmirror.local import LOCAL
from airmirror_local.ports import LOOPBACK
from airmirror_local.processes import ProcessFailed

META = "meta.properties"
# What the format asks for; a node's own properties are Kafka's affair when it starts.
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": f"1@{LOOPBACK}:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": f"PLAINTEXT://{LOOPBACK}:9092,CONTROLLER://{LOOPBACK}:9093",
}


def new_id() -> str:
    """A random id as Kafka writes them; none begins with a dash, which commands would take for an option."""
    while (found := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return found


def format_storage(
    data: Path,
    node: int,
    cluster_id: str,
    java: Callable[[], Sequence[str]],
    version: str,
    features: Mapping[str, int],
    local: Path = LOCAL,
) -> None:
    """Make ``data`` the formatted storage of a node. ``java`` tells the command that runs a class of this Kafka's.

    Raises ProcessFailed when the template can't be made.
    """
    shutil.copytree(_template(java, version, features, local), data)
    meta = (data / META).read_text()
    for key, value in {"node.id": str(node), "cluster.id": cluster_id, "directory.id": new_id()}.items():
        meta = re.sub(rf"(?m)^{re.escape(key)}=.*$", f"{key}={value}", meta)
    (data / META).write_text(meta)


def _template(java: Callable[[], Sequence[str]], version: str, features: Mapping[str, int], local: Path) -> Path:
    levels = [f"{name}={level}" for name, level in sorted(features.items())]
    template = local / "storage" / ",".join((version, *levels))
    if template.is_dir():
        return template
    template.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=template.parent, prefix="formatting-") as scratch:
        data, properties = Path(scratch, "data"), Path(scratch, "server.properties")
        write_properties(properties, SETTINGS | {"log.dirs": str(data)})
        command = [*java(), "kafka.tools.StorageTool", "format", f"--cluster-id={new_id()}", "-c", str(properties)]
        command += [argument for level in levels for argument in ("--feature", level)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            what = f"could not be formatted with {', '.join(levels) or 'its own features'}"
            raise ProcessFailed(f"storage of Kafka {version}", what, properties, answer.stdout + answer.stderr)
        try:
            data.rename(template)  # in one step, so a template that is there is complete
        except OSError:
            if not template.is_dir():  # else another process was quicker
                raise
    return template


def write_properties(file: Path, settings: Mapping[str, str]) -> None:
    """Write a properties file of plain values."""
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

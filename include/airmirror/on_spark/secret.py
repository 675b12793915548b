"""A deployment's secret, from which the ids of its Spark sessions come: no other user can join one, or prepare it.

``AIRMIRROR_SPARK_SECRET`` in the environment of every process of the deployment; without it one of the user on this machine.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
from functools import cache
from typing import Protocol
from uuid import UUID

from airmirror.config import Cluster
from airmirror.private import private_directory

VARIABLE = "AIRMIRROR_SPARK_SECRET"
FILE = "spark.secret"


class ClusterPair(Protocol):
    """Two clusters that a session is about, by a name: a flow, or a comparison."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> Cluster: ...
    @property
    def target(self) -> Cluster: ...


def session_id(flow: ClusterPair, library: str, generation: int) -> UUID:
    """The id of the flow's session: another flow, deployment, cluster, library or generation has another one."""
    parts = (flow.name, *flow.source.bootstrap_servers, "", *flow.target.bootstrap_servers, library, str(generation))
    digest = hmac.digest(_secret(os.environ.get(VARIABLE, "")), "\0".join(parts).encode(), "sha256")
    return UUID(bytes=digest[:16], version=4)


@cache
def _secret(given: str) -> bytes:
    directory = private_directory()
    if given or directory is None:
        return given.encode() or secrets.token_bytes(32)
    file, draft = directory / FILE, directory / f"{FILE}.{os.getpid()}"
    if not file.exists():
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(secrets.token_bytes(32))
        with contextlib.suppress(FileExistsError):  # another process was quicker: its secret counts
            os.link(draft, file)
        draft.unlink()
    return file.read_bytes()

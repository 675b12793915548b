"""The files that a submitted driver is given: its configuration, its secrets, its ranges.

In client mode they are files of this machine, of mode 0600. In deploy mode cluster spark-submit uploads them; on Kubernetes a
secret of the window's own holds them, and nothing is uploaded: the driver's image has the library.
"""

from __future__ import annotations

import logging
import os
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from urllib3.exceptions import HTTPError

from airmirror.errors import AirmirrorError
from airmirror.on_spark.job import APPLICATION
from airmirror.on_spark.library import build, digest

CONFIG, SECRETS, RANGES = "mirror.properties", "secrets.properties", "ranges.json"
MOUNT = "/etc/airmirror-window"  # where the driver's pod has the secret; it would hide what else is there
LABELS = {"app.kubernetes.io/name": "airmirror", "app.kubernetes.io/component": "window"}

log = logging.getLogger(__name__)


class SecretRefused(AirmirrorError):
    """A window whose secret Kubernetes does not take."""

    namespace: str
    reason: str
    status: int

    @property
    def transient(self) -> bool:  # type: ignore[override]
        return self.status == 429 or self.status >= 500

    def __str__(self) -> str:
        why = f"Kubernetes does not take the window's secret in namespace {self.namespace!r} ({self.status} {self.reason})"
        return f"{why}; {_WAYS_OUT[self.status]}" if self.status in _WAYS_OUT else why


_RIGHTS = "the rights that Airflow's tasks need: kubectl apply -f include/kubernetes/rights.yaml"
_TOO_LARGE = "it may hold 1 MiB, and has the configuration, what stores hold and an audit's ranges: narrow the run down to topics"
_WAYS_OUT = {401: _RIGHTS, 403: _RIGHTS, 413: _TOO_LARGE, 422: _TOO_LARGE}


@dataclass(frozen=True)
class DriverFiles:
    """What spark-submit starts, where the driver finds its files by their names, and what else the hook is told.

    ``ended`` tells what a driver elsewhere has said, and returns its exit status; None: spark-submit's own counts.
    """

    application: str
    paths: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    ended: Callable[[], int | None] = lambda: None


@contextmanager
def files_here(contents: Mapping[str, bytes], config: Path) -> Iterator[DriverFiles]:
    """For a driver on this machine."""
    with _directory(contents) as directory:
        yield DriverFiles(str(APPLICATION), {name: str(directory / name) for name in contents} | {CONFIG: str(config)})


@contextmanager
def files_uploaded(contents: Mapping[str, bytes]) -> Iterator[DriverFiles]:
    """For a driver that spark-submit sends its files and the library to, into its working directory."""
    with _directory(contents) as directory:
        log.warning("Spark may keep the file of secrets where it uploads to, readable by all: see docs/deploy.md.")
        sent = ",".join(str(directory / name) for name in contents)
        library = str(build(digest(), str(directory)))
        yield DriverFiles(str(APPLICATION), {name: name for name in contents}, {"files": sent, "py_files": library})


@contextmanager
def files_in_secret(contents: Mapping[str, bytes], namespace: str) -> Iterator[DriverFiles]:
    """For a driver in a pod. The secret is removed in the end, and so is the pod, unless it has failed."""
    from airflow.providers.cncf.kubernetes.kube_client import get_kube_client
    from kubernetes.client import ApiException

    pods, name = get_kube_client(), f"airmirror-{uuid4().hex[:12]}"
    driver = f"{name}-driver"  # by this ending Airflow's hook knows the pod, which it removes when the task is killed
    files = {**contents, APPLICATION.name: APPLICATION.read_bytes()}
    secret = {
        "metadata": {"name": name, "labels": LABELS},
        "data": {each: b64encode(content).decode() for each, content in files.items()},
        "immutable": True,
    }
    try:
        pods.create_namespaced_secret(namespace, secret)
    except ApiException as error:
        raise SecretRefused(namespace, str(error.reason), status=int(error.status or 0)) from error
    except BaseException:  # no answer, or the task's end: whether it was made is not known
        _remove(pods.delete_namespaced_secret, "secret", name, namespace)
        raise
    options = {
        f"spark.kubernetes.driver.secrets.{name}": MOUNT,
        "spark.kubernetes.driver.pod.name": driver,
        "spark.kubernetes.namespace": namespace,
        **{f"spark.kubernetes.driver.label.{label}": value for label, value in LABELS.items()},
    }
    try:
        paths = {each: f"{MOUNT}/{each}" for each in contents}
        yield DriverFiles(
            f"local://{MOUNT}/{APPLICATION.name}",
            paths,
            {"conf": options},
            partial(_driver_ended, pods, driver, namespace),
        )
    finally:
        _remove(pods.delete_namespaced_secret, "secret", name, namespace)


def _driver_ended(pods: Any, name: str, namespace: str) -> int | None:
    """Log what the driver has said of its window, remove its pod if all went well, and return its exit status."""
    from kubernetes.client import ApiException

    try:
        states = pods.read_namespaced_pod(name, namespace).status.container_statuses or []
        # As bytes: the client (36.0) makes text of them by str(), b'…' and all.
        said = pods.read_namespaced_pod_log(name, namespace, tail_lines=10_000, _preload_content=False).data
    except (ApiException, HTTPError) as error:
        log.warning("The driver's pod %s in namespace %s can't be read: %s", name, namespace, _reason(error))
        return None
    for line in said.decode(errors="replace").splitlines():
        if line.startswith("airmirror:"):
            log.info("%s", line)
    ends = [state.state.terminated.exit_code for state in states if state.state.terminated is not None]
    if ends == [0]:
        _remove(pods.delete_namespaced_pod, "pod", name, namespace)
    else:
        log.error("What the driver has written: kubectl logs --namespace %s %s", namespace, name)
    return ends[0] if ends else None


def _remove(delete: Callable[[str, str], object], kind: str, name: str, namespace: str) -> None:
    """Remove what a window has left. The window has ended as it has: where this fails, it is only told."""
    from kubernetes.client import ApiException

    try:
        delete(name, namespace)
    except (ApiException, HTTPError) as error:
        if getattr(error, "status", 0) != 404:  # else others have removed it
            command = f"kubectl delete {kind} --namespace {namespace} {name}"
            log.warning("The %s of the window is left (%s): %s", kind, _reason(error), command)


def _reason(error: Exception) -> object:
    return getattr(error, "reason", None) or error


@contextmanager
def _directory(contents: Mapping[str, bytes]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="airmirror-submit-") as home:  # of mode 0700
        for name, content in contents.items():
            with os.fdopen(os.open(Path(home) / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
        yield Path(home)

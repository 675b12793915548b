"""What a command needs and is not installed: which extra has it, and the command that adds it to what is installed."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from importlib.util import find_spec

from airmirror.errors import AirmirrorError

EXTRAS = {
    "airflow": "airflow",
    "cryptography": "crypto",
    "great_expectations": "gate",
    "httpx": "demo",
    "pandas": "gate",
    "psutil": "demo",
    "py4j": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
    "vega_datasets": "demo",
}
"""The extra that has a module, for those which a command imports when it needs them and `cli` has not."""


class NotInstalled(AirmirrorError, bad_input=True):
    """A command needs a module of an extra that was not installed."""

    module: str
    extra: str
    installs: str
    says = (
        "this needs {0.module}, which is not installed; the extra {0.extra!r} has it, where Airmirror was installed from: "
        "`{0.installs}`"
    )


def not_installed(error: ModuleNotFoundError) -> NotInstalled | None:
    """Return what is to be installed where a module of an extra is missing; None: it is no extra's, and a fault of ours."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    return NotInstalled(module, extra, installs(extra)) if extra else None


def needs(module: str) -> None:
    """Look for a module of an extra before anything has begun. Raises NotInstalled."""
    if find_spec(module) is None:
        raise NotInstalled(module, EXTRAS[module], installs(EXTRAS[module]))


def installs(extra: str) -> str:
    """Return the command that adds an extra to the Airmirror that runs, from where that was installed."""
    installed = metadata.distribution("airmirror")
    origin = installed.read_text("direct_url.json")  # PEP 610: of a wheel or a folder, not of a package index
    source = f" @ {json.loads(origin)['url']}" if origin else f"=={installed.version}"
    return shlex.join([sys.executable, "-m", "pip", "install", f"airmirror[{extra}]{source}"])

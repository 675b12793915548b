"""The stack that `airmirror up` leaves running: where its files are, and that commands without options talk to it."""

from __future__ import annotations

import os
from pathlib import Path

from airmirror.local import LOCAL

HOME = Path(os.environ.get("AIRMIRROR_UP") or LOCAL / "up").resolve()


def configuration() -> Path:
    return HOME / "mirror.properties"


def ledger() -> str:
    return f"sqlite:///{HOME / 'ledger.db'}"


def spark_file() -> Path:
    """The URL of its Spark Connect server, with the token: nobody else's to read."""
    return HOME / "spark-url"


def is_stack(config: Path) -> bool:
    return config.resolve() == configuration()

"""Makes ahead of time what lets brokers start quickly: ``python -m airmirror_local.prepare``, which ``make install`` runs.

A first start leaves a formatted storage to copy, and its Java an archive of the classes that it has loaded.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from airmirror.local import LOCAL
from airmirror_local.brokers import ARCHIVES, QUICK_START, start_broker
from airmirror_local.class_data import archive_name, archive_of
from airmirror_local.jars import KAFKA_VERSION
from airmirror_local.java import find_java
from airmirror_local.processes import ProcessFailed

STOP_SECONDS = 120  # Java writes the archive when it ends


def prepare(version: str = KAFKA_VERSION, local: Path = LOCAL) -> Path:
    """Return the archive of classes; starts and stops a broker when it is not there. Raises ProcessFailed."""
    archive = archive_of(find_java(), version, local)
    if archive.is_file():
        return archive
    local.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=local, prefix="preparing-") as scratch:
        draft = Path(scratch, archive.name)
        broker = start_broker(
            Path(scratch), "first", java_options=(*QUICK_START, f"{ARCHIVES}{draft}"), version=version
        )
        broker.process.stop(STOP_SECONDS)
        if not draft.is_file():
            raise ProcessFailed("broker first", "left no archive of its classes", broker.log, broker.process.log_tail())
        draft.rename(archive)  # in one step, so an archive that is there is complete
    for other in set(local.glob(archive_name(version, "*"))) - {archive}:
        other.unlink()  # of a Java that was here before
    return archive


if __name__ == "__main__":
    print(prepare())

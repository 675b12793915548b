"""The library as one zip: all that a driver needs is in it, and it is sent once (deploy mode cluster)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airmirror.on_spark import library
from airmirror.on_spark.sessions import _send


def test_a_driver_that_finds_the_zip_first_has_the_products_suite(tmp_path: Path) -> None:
    archive = library.build(library.digest(), str(tmp_path))
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r})\n"
        "from airmirror.flows.gates import expectations_of\n"
        "from airmirror.quality import suites\n"
        "print('.zip' in suites.__file__, [each.name for each in expectations_of(None, wanted=True).suites])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=400, cwd=tmp_path
    )
    assert done.stdout.strip() == "True ['replication']", done.stderr


def test_a_library_that_spark_submit_has_sent_along_is_not_sent_again(tmp_path: Path) -> None:
    archive, sent = tmp_path / "airmirror-abc.zip", []
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(listFiles=[], addPyFile=sent.append))
    _send(spark, archive)
    assert sent == [str(archive)]
    spark.sparkContext.listFiles = ["file:/var/spark/work/airmirror-abc.zip"]
    _send(spark, archive)
    assert sent == [str(archive)]

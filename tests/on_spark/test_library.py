"""The library as one zip: all that a driver needs is in it, and it is sent once (deploy mode cluster)."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle

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


def test_a_library_of_1970_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (module := tmp_path / "airmirror" / "of_an_image.py").parent.mkdir()
    module.touch()
    os.utime(module, (0, 0))
    monkeypatch.setattr(library, "PACKAGE", module.parent)
    with zipfile.ZipFile(library.build("abc", str(tmp_path))) as archive:
        assert archive.namelist() == ["airmirror/of_an_image.py"]


def test_a_library_that_spark_submit_has_sent_along_is_not_sent_again(tmp_path: Path) -> None:
    archive, sent = tmp_path / "airmirror-abc.zip", []
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(listFiles=[], addPyFile=sent.append))
    _send(spark, archive)
    assert sent == [str(archive)]
    spark.sparkContext.listFiles = ["file:/var/spark/work/airmirror-abc.zip"]
    _send(spark, archive)
    assert sent == [str(archive)]


def test_another_file_in_the_librarys_session_is_refused(tmp_path: Path) -> None:
    """A session has a directory of its own: whatever lies beside the library could be imported in place of what it imports."""
    digest = library.digest()
    home = tmp_path / "0f2a7d0e-5b1c-4a57-9d0e-1b2c3d4e5f60"
    home.mkdir()
    archive = library.build(digest, str(home))
    check = (
        f"import sys; sys.path[:0] = [{str(home)!r}, {str(archive)!r}]\n"
        "import base64\nfrom pyspark import cloudpickle\ncloudpickle.loads(base64.b64decode({!r}))()"
    )
    sent = base64.b64encode(cloudpickle.dumps(library.checker(digest))).decode()

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-c", check.format(sent)]
        return subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)

    assert run().returncode == 0
    (home / "crc32c.py").write_text("raise SystemExit('a stranger')")
    refused = run()
    assert refused.returncode == 1 and library.ALTERED in refused.stderr and "crc32c.py" in refused.stderr

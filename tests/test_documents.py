"""The pages that `make docs` writes are current and complete."""

from __future__ import annotations

import re
import runpy
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import typer

import test_quickstarts as quickstarts
from airmirror.cli.main import app
from airmirror.clusters.security.model import UnsupportedClientSetting
from airmirror.clusters.security.settings import security_of
from airmirror.errors import AirmirrorError
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.migration.producers import MoveNotFinished
from support import ROOT, compatibility
from support.documents import FEW, PAGES
from support.errors import all_errors, sample
from support.resolution import AIRFLOWS, PYTHONS
from support.services import SERVICES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_make_docs_writes(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == PAGES[name](), "run make docs"


def test_every_error_is_there_with_its_kind() -> None:
    found = dict(
        re.findall(r"^\| `(\w+)` \| (transient or final|transient|final) \|", _text("errors.md"), re.MULTILINE)
    )
    assert found.keys() == {error.__name__ for error in all_errors() if error is not AirmirrorError}
    assert found["FlowBusy"] == "transient" and found["ConfigurationError"] == "final"
    assert found["SubmittedWindowFailed"] == "transient or final"


def test_every_error_has_a_place_by_room_and_names_its_facts() -> None:
    """No fact is made up: what the samples' facts are appears nowhere, and what is no code is no markup."""
    text = _text("errors.md")
    rooms = Counter(error.__module__.split(".")[1] for error in all_errors() if error is not AirmirrorError)
    large = sorted(room for room, errors in rooms.items() if errors > FEW)
    assert sorted(re.findall(r"^## (.*)$", text, re.MULTILINE)) == sorted([*large, "other packages"])
    assert not re.findall(r"orders with a blank|'sample'|east->west|west->east|1970|RequestTimedOut|invariant", text)
    rows = [re.sub(r"`[^`]*`", "", line) for line in text.splitlines() if line.startswith("| `")]
    assert rows and all(len(re.findall(r"(?<!\\)\|", row)) == 5 and not re.search(r"(?<!\\)<", row) for row in rows)


def test_the_readme_s_two_commands_are_targets_that_install_what_is_missing() -> None:
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    assert "```\nmake demo\nmake test\n```" in readme
    assert re.search("^demo: install ", makefile, re.MULTILINE) and re.search("^test: install ", makefile, re.MULTILINE)
    words = re.findall(r"^\| ([a-z ]+) \| ", readme.split("## Words")[1], re.MULTILINE)[1:]
    assert {"flow", "window", "lease"} <= set(words) and len(words) <= 10, "a reader learns no more words than these"
    first = readme.split("\n\n")[1]
    assert len(re.findall(r"[.?!](?=\s|$)", first)) == 5, "what it is, for whom, what it proves"


def test_pages_name_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [page for place in ("", "docs", "examples", "benchmarks") for page in (ROOT / place).glob("*.md")]
    called = {
        (page.name, target)
        for page in pages
        if page.name != "CHANGELOG.md"  # what was so
        for target in re.findall(r"(?:`|^ *)make\s+([a-z-]+)", page.read_text(), re.MULTILINE)
    }
    assert len({target for _, target in called}) > 15
    assert not {(page, target) for page, target in called if target not in targets}


def test_an_error_that_has_a_text_has_inherited_no_other_message() -> None:
    for error in all_errors():
        base, own = (RunbookError, "what") if issubclass(error, RunbookError) else (AirmirrorError, "__str__")
        nearest = next(each for each in error.__mro__ if vars(each).keys() & {"says", own})
        assert own in vars(nearest) or getattr(error, own) is getattr(base, own), error


def test_a_fact_in_the_command_of_a_message_is_one_word() -> None:
    """Whatever it is: a person copies the command."""
    error = MoveNotFinished("a->b", ("x",), "all; of {it}")
    assert "`airmirror migration run --move 'all; of {it}' --reason '…' --flow 'a->b'`" in str(error)


def test_names_of_errors_are_unique() -> None:
    names = [error.__name__ for error in all_errors()]
    assert sorted(names) == sorted(set(names))


def test_every_command_and_option_is_there() -> None:
    text = _text("cli.md")
    top = typer.main.get_command(app)
    for name, command in top.commands.items():  # type: ignore[attr-defined]
        below = {f"{name} {sub}": found for sub, found in getattr(command, "commands", {}).items()}
        own = {name: command} if command.params or not below else {}
        for words, each in (own | below).items():
            (section,) = re.findall(
                rf"^## airmirror {re.escape(words)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
            )
            for parameter in each.params:
                assert f"`{parameter.opts[0]}`" in section, (words, parameter.opts)


def _text(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def test_nobody_is_told_to_begin_again_what_returns() -> None:
    """The remote topic of what returns is the original: begun again it is deleted, or holds every record twice."""
    usual, told = (
        [str(sample(each, returns)) for each in all_errors()] for returns in ({}, {"orders with a blank": "orders"})
    )
    again = [number for number, text in enumerate(usual) if "--start-again" in text]
    assert len(again) > 5 and not any("--start-again" in text for text in told)
    assert all("airmirror failback undo --topic orders" in told[number] for number in again)
    assert all("--flow 'west->east'" in told[number] for number in again)


def test_a_run_s_outcomes_become_cells_and_a_failure_is_never_hidden(tmp_path: Path) -> None:
    cases = "".join(
        f'<testcase classname="any" name="test_the_fence_on_an_old_kafka[{version}]">{inner}</testcase>'
        for version, inner in (("2.8.2", ""), ("4.0.0", "<failure/>"), ("4.0.0", ""), ("4.2.0", "<skipped/>"))
    )
    (tmp_path / "junit.xml").write_text(
        f'<testsuites><testsuite>{cases}<testcase name="test_else"/></testsuite></testsuites>'
    )
    new = list(compatibility.outcomes(tmp_path / "junit.xml", "2030-01-02"))
    what = new[0].row
    before = [
        compatibility.Tried("Kafka", what, version, "✓", "2030-01-01") for version in ("4.0.0", "4.2.0", "4.10.0")
    ]
    found = compatibility.merged(before, new)
    assert [(each.column, each.outcome) for each in sorted(found, key=lambda each: each.column)] == [
        ("2.8.2", "✓"),
        ("4.0.0", "✗"),
        ("4.10.0", "✓"),
        ("4.2.0", "✓"),
    ]
    made = compatibility.table(found)
    assert made.startswith("|  | 2.8.2 | 4.0.0 | 4.2.0 | 4.10.0 |\n| --- |") and f"| {what} | ✓ | ✗ | ✓ | ✓ |" in made
    assert made.endswith("Last run of any of these: 2030-01-02.\n")


def test_every_test_of_the_table_is_there() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name in compatibility.SHOWN if f"def {name}(" not in sources] == []


def test_a_service_has_what_was_tried_under_what_it_forces_and_what_can_not_be() -> None:
    forced = "Python 3.12: `airmirror[airflow]` installs"
    tried = [
        compatibility.Tried(table, row, column, outcome, "2030-01-02")
        for table, row, column, outcome in (
            ("Managed", "its files", "Amazon MWAA", "✗"),
            ("Managed", "its files", "Astro", "✓"),
            ("Airflow", forced, "3.3.1", "✓"),
            ("Airflow", forced, "3.3.2", "✗"),
            ("Airflow", forced.replace("[airflow]", "[all]"), "3.3.1", "✗"),
            ("Airflow", forced.replace("3.12", "3.13"), "3.3.1", "✗"),
        )
    ]
    lines = [
        line.strip("| ").split(" | ") for line in compatibility.services(tried).splitlines() if line.startswith("| ")
    ]
    assert [line[1:] for line in lines if line[0] == "Amazon MWAA"] == [
        ["its files", "✗"],
        [f"Airflow 3.3.1, {forced}", "✓"],
        ["on the service itself", "not tried"],
    ]
    assert next(line[1:] for line in lines if line[0] == "Astro") == ["its files", "✓"]
    names = {each.name for each in SERVICES}
    assert names == {line[0] for line in lines[2:]} and names > set(quickstarts.SERVICES)
    assert all(AIRFLOWS[airflow] and python in PYTHONS for each in SERVICES for airflow, python in each.forced)
    with pytest.raises(UnsupportedClientSetting):  # what the table says of MSK is so
        security_of("msk", {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"})


def test_no_page_installs_by_a_name_that_is_not_ours_on_a_package_index() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.md")]
    by_name = re.compile(r"pip install[^`\n]*[\s\"']airmirror\b(?!-)")
    assert by_name.search("pip install 'airmirror[cli]'") and not by_name.search(
        'pip install "$(echo dist/airmirror-*.whl)"'
    )
    assert len(pages) > 30 and [page.name for page in pages if by_name.search(page.read_text())] == []


def test_the_site_has_the_pages_of_every_release_and_lists_them(tmp_path: Path) -> None:
    make = runpy.run_path(str(ROOT / "docs" / "site" / "build.py"))["make"]
    sources, site, built = tmp_path / "sources", tmp_path / "site", []

    def git(*words: str) -> None:
        who = ("-c", "user.name=any", "-c", "user.email=any@example.org")
        subprocess.run(["git", *who, *words], cwd=sources, check=True, capture_output=True)

    def build(of: Path, into: Path) -> None:
        text = (of / "CHANGELOG.md").read_text()
        built.append(text.split()[1])
        into.mkdir()
        (into / "index.html").write_text(text)

    def commit(head: str) -> None:
        (sources / "CHANGELOG.md").write_text(f"## {head}\n")
        git("add", ".")
        git("commit", "--quiet", "--message", "any")

    def listed() -> list[str]:
        built.clear()
        make(sources, site, build)
        lines = re.findall(r'<li><a href="(.*?)/index.html">(.*?)</a>(.*)\n', (site / "index.html").read_text())
        assert all((site / folder / "index.html").is_file() and folder == name for folder, name, _ in lines)
        return [name + note for _, name, note in lines]

    sources.mkdir()
    (sources / "CHANGELOG.md").write_text("## [0.1.0] - unreleased\n")
    assert (listed(), built) == (["0.1.0 (unreleased)"], ["[0.1.0]"])
    git("init", "--quiet")
    for version in ("0.1.0", "0.9.0"):
        commit(f"[{version}] - 2030-01-31")
        git("tag", f"v{version}", *(["--annotate", "--message", "any"] if version == "0.1.0" else []))
    git("tag", "vote")
    commit("[0.10.0] - unreleased")
    assert listed() == ["0.10.0 (unreleased)", "0.9.0", "0.1.0"]
    assert sorted(built) == ["[0.1.0]", "[0.10.0]", "[0.9.0]"], "what was built before the tag is no release's pages"
    assert "2030-01-31" in (site / "0.1.0" / "index.html").read_text()
    assert listed()[1:] == ["0.9.0", "0.1.0"] and built == ["[0.10.0]"], "a release is built once"

"""The gate: what fails which partition, what only warns, and what files of expectations may say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from airmirror.quality import gate
from airmirror.quality.gate import Limits, validate
from airmirror.quality.rows import COLUMNS
from airmirror.quality.suites import OWN, BadExpectations, Suite, check_suites, default_directory, load_suites
from airmirror.quality.verdict import Validation

GOOD: Mapping[str, object] = {
    "topic": "orders",
    "partition": 0,
    "remote_topic": "east.orders",
    "source_start": 0,
    "source_end": 12,
    "target_start": 0,
    "target_end": 10,
    "offsets": 12,
    "accounted": 12,
    "copied": 10,
    "target_records": 10,
    "control": 2,
    "aborted": 0,
    "holes": 0,
    "unexpected_holes": 0,
    "lost": 0,
    "bytes": 1000,
    "gaps": 0,
    "order_violations": 0,
    "digest_differences": 0,
    "lag_records": 0,
    "lag_seconds": 0.0,
    "max_timestamp": 1_700_000_000_000,
    "error": None,
}


def rows(*changes: Mapping[str, object]) -> list[Mapping[str, object]]:
    """A good row, and one with each of the changes, numbered from partition 1 on."""
    return [GOOD, *({**GOOD, "partition": number, **change} for number, change in enumerate(changes, start=1))]


def asked(given: list[Mapping[str, object]], suites: tuple[Suite, ...] | None = None, **limits: float) -> Validation:
    chosen = load_suites(OWN) if suites is None else suites
    return validate(given, chosen, flow="east->west", window="w", limits=Limits(**limits))  # type: ignore[arg-type]


def written(directory: Path, text: str, name: str = "mine.yaml") -> tuple[Suite, ...]:
    """The product's own suite and one of a user's."""
    (directory / name).write_text(text)
    return load_suites(directory)


def test_the_rows_have_the_documented_columns() -> None:
    assert set(GOOD) == set(COLUMNS)


@pytest.mark.parametrize(
    "change",
    [
        {"accounted": 11},
        {"target_records": 9},
        {"gaps": 1},
        {"order_violations": 1},
        {"digest_differences": 1},
        {"unexpected_holes": 1},
        {"error": "the target differs"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_violation_fails_its_partition_only(change: Mapping[str, object]) -> None:
    given = rows({}, change)
    validation = asked(given)
    assert list(validation.failed) == [("orders", 2)]
    assert validation.failed and not validation.warnings


def test_good_rows_pass_and_nothing_is_not_judged() -> None:
    assert not asked(rows({}, {})).failed
    assert asked([]) == Validation({}, ())


def test_lag_warns_and_is_told() -> None:
    given = rows({"lag_records": 101, "lag_seconds": 5.0}, {"lag_records": 5, "lag_seconds": 61.0})
    validation = asked(given, lag_records=100, lag_seconds=60.0)
    over = {partition for each in validation.asked for partition in each.failed}
    assert not validation.failed and over == {("orders", 1), ("orders", 2)}
    assert len(validation.warnings) == 2
    assert asked(given).warnings == ()
    assert asked(rows({"lag_records": 100, "lag_seconds": 60.0}), lag_records=100, lag_seconds=60.0).warnings == ()


def test_what_nobody_has_measured_passes_and_is_told() -> None:
    validation = asked(rows({"target_records": None, "digest_differences": None}, {"target_records": 9}))
    assert list(validation.failed) == [("orders", 2)]
    (warning,) = validation.warnings
    assert warning.startswith("not measured: target_records and digest_differences of 1 partitions")
    assert asked(rows({"copied": None})).failed == {("orders", 1): ("no value in copied",)}


def test_declared_losses_pass_and_warn() -> None:
    validation = asked(rows({"lost": 2, "copied": 8, "target_records": 8}))
    assert not validation.failed
    assert len(validation.warnings) == 1 and "lost" in validation.warnings[0]


def test_users_suites_are_for_their_flows_and_topics(tmp_path: Path) -> None:
    expectation = "[{type: expect_column_max_to_be_between, kwargs: {column: bytes, max_value: 10}}]"
    suites = written(tmp_path, f"name: mine\nflows: ['east->*']\ntopics: ['ord.*']\nexpectations: {expectation}\n")
    other: Mapping[str, object] = {**GOOD, "topic": "payments"}
    assert [suite.name for suite in suites] == ["mine", "replication"]
    # An expectation about the whole fails everything that it was asked for.
    assert set(asked([*rows({}), other], suites).failed) == {("orders", 0), ("orders", 1)}
    suites = written(tmp_path, f"name: mine\ntopics: ['ord', 'rders']\nexpectations: {expectation}\n")
    assert not asked(rows(), suites).failed, "a pattern is for whole names"
    suites = written(tmp_path, f"name: mine\nflows: ['west->*']\nexpectations: {expectation}\n")
    assert not asked(rows(), suites).failed


def test_each_partition_is_told_what_was_found_in_it(tmp_path: Path) -> None:
    suites = written(
        tmp_path,
        """
name: mine
expectations:
  - {type: expect_column_values_to_be_between, kwargs: {column: copied, max_value: 20}}
  - {type: expect_column_pair_values_to_be_equal, kwargs: {column_A: source_end, column_B: offsets}}
  - {type: expect_column_values_to_be_between, kwargs: {column: partition, max_value: 2}}
""",
    )
    given = rows({"copied": 30, "target_records": 30}, {"source_end": 13}, {"copied": 40, "target_records": 40})
    failed = asked(given, suites).failed
    ends = {
        partition: [reason.split(" (suite")[0].partition("is not met, ")[2] for reason in failed["orders", partition]]
        for partition in (1, 2, 3)
    }
    assert ends == {1: ["found 30"], 2: ["found 13 and 12"], 3: ["found 40", "found 3"]}


def test_a_warning_of_a_users_suite_does_not_fail(tmp_path: Path) -> None:
    expectation = (
        "{type: expect_column_values_to_be_in_set, kwargs: {column: bytes, value_set: [1]}, severity: warning}"
    )
    validation = asked(rows(), written(tmp_path, f"name: mine\nexpectations: [{expectation}]\n"))
    assert not validation.failed and "suite mine" in validation.warnings[0]


def test_what_cannot_be_evaluated_fails(tmp_path: Path) -> None:
    expectation = "{type: expect_column_values_to_match_regex, kwargs: {column: bytes, regex: '['}, severity: warning}"
    validation = asked(rows({}), written(tmp_path, f"name: mine\nexpectations: [{expectation}]\n"))
    assert set(validation.failed) == {("orders", 0), ("orders", 1)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: [", "no YAML"),
        ("- 1", "must be a mapping"),
        ("name: a\nexpectation: []", "did you mean 'expectations'"),
        ("name: a\nexpectations: []", "at least one"),
        ("name: lag\nexpectations: [{type: x}]", "is taken"),
        ("name: a/b\nexpectations: [{type: x}]", "letters, digits"),
        ("name: a\nexpectations: [{type: x, kwargs: {column: {a: b}}}]", "no column"),
        ("name: a\ntopics: ['[']\nexpectations: [{type: x}]", "no regular expression"),
        ("name: a\nexpectations: [{type: x, severity: bad}]", "severity must be one of"),
        ("name: a\nexpectations: [{type: x, kwargs: {column: lag_record}}]", "did you mean 'lag_records'"),
    ],
)
def test_bad_files_are_named_with_their_error(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "other.yml").write_text("name: 1")
    with pytest.raises(BadExpectations) as caught:
        written(tmp_path, text)
    assert f"mine.yaml: {said}" in str(caught.value).replace("unknown key 'expectation'; ", "") or said in str(
        caught.value
    )
    assert "other.yml: name must be a text" in str(caught.value)


@pytest.mark.parametrize(
    ("expectation", "said"),
    [
        ("{type: expect_column_values_to_be_betwen, kwargs: {column: lag_records}}", "did you mean"),
        ("{type: expect_column_values_to_be_between, kwargs: {column: lag_records, most: 1}}", "most"),
    ],
)
def test_great_expectations_checks_types_and_arguments(tmp_path: Path, expectation: str, said: str) -> None:
    suites = written(tmp_path, f"name: mine\nexpectations: [{expectation}]\n")
    with pytest.raises(BadExpectations) as caught:
        check_suites(suites)
    assert "mine.yaml: expectation 1" in str(caught.value) and said in str(caught.value)


def test_two_expectations_of_one_type_are_told_apart(tmp_path: Path) -> None:
    one = "{type: expect_column_values_to_be_between, kwargs: {column: bytes, max_value: 10, mostly: 0.4}, severity: warning}"
    two = "{type: expect_column_values_to_be_between, kwargs: {column: bytes, max_value: 10, mostly: 1, strict_max: false}}"
    validation = asked(rows({"bytes": 1}), written(tmp_path, f"name: mine\nexpectations: [{one}, {two}]\n"))
    assert list(validation.failed) == [("orders", 0)]


@pytest.mark.parametrize("column", ["gaps", "accounted", "copied"])
def test_a_missing_value_fails(column: str) -> None:
    assert list(asked(rows({column: None})).failed) == [("orders", 1)]


def test_the_products_own_suite_is_always_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own,) = load_suites(OWN)
    assert own.name == "replication" and len(own.expectations) == 8
    monkeypatch.chdir(tmp_path)  # without an include/expectations
    assert default_directory() == OWN
    (tmp_path / "include" / "expectations").mkdir(parents=True)
    assert load_suites(default_directory()) == (own,)
    (default_directory() / "replication.yaml").write_text(
        "name: mine\nexpectations: [{type: expect_table_row_count_to_be_between}]"
    )
    assert [suite.name for suite in load_suites(default_directory())] == ["mine"], "a file of its name takes its place"


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadExpectations, match="nowhere: no such directory"):
        load_suites(tmp_path / "nowhere")


def test_names_are_unique(tmp_path: Path) -> None:
    written(tmp_path, "name: mine\nexpectations: [{type: expect_table_row_count_to_be_between}]")
    with pytest.raises(BadExpectations, match="another file has the name 'mine'"):
        written(tmp_path, "name: mine\nexpectations: [{type: expect_table_row_count_to_be_between}]", "other.yaml")


def test_reading_files_does_not_load_great_expectations() -> None:
    code = (
        "import sys, pathlib; from airmirror.quality.suites import load_suites; import airmirror.quality.gate;"
        f"load_suites(pathlib.Path({str(OWN)!r})); print('great_expectations' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("window", ["0001-01-01", "1-1-1 AD", "9999-12-31T23:59:59-23:00", "20261118T"])
def test_a_windows_name_is_never_read_as_a_date(window: str) -> None:
    validation = validate([GOOD], load_suites(OWN), flow="east->west", window=window, limits=Limits())
    assert validation.failed == {} and validation.asked


@pytest.mark.parametrize("part", ["_validate", "_context"])
def test_what_the_library_raises_holds_and_can_be_judged_again(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> None:
        raise ValueError("year 0 is out of range")

    with monkeypatch.context() as patched:
        patched.setattr(gate, part, raises)
        validation = asked([GOOD])
    assert validation.failed.keys() == {("orders", 0)}
    assert "can't be evaluated: ValueError: year 0 is out of range" in validation.failed["orders", 0][0]
    assert asked([GOOD]).failed == {}

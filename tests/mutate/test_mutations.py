"""The runner of mutations: what it applies, what it refuses; and the list itself can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutate.mutations import LIST, DoesNotApply, Mutation, load, mutated

ONE = '[[mutation]]\nname = "%s"\nfile = "a.py"\nbefore = "1"\nafter = "%s"\ntests = ["test_a.py"]\n'


def test_a_text_is_replaced_where_it_stands_once() -> None:
    mutation = Mutation("m", "a.py", "x > 1", "x >= 1", ("test_a.py",))
    assert mutated(mutation, "if x > 1:\n") == "if x >= 1:\n"
    for text in ("if x < 1:\n", "x > 1 or x > 1\n"):
        with pytest.raises(DoesNotApply, match=r"m: its text stands [02] times in a\.py"):
            mutated(mutation, text)


def test_a_list_has_no_name_twice_and_no_mutation_that_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mutations.toml"
    file.write_text(ONE % ("m", "2"))
    assert load(file) == [Mutation("m", "a.py", "1", "2", ("test_a.py",))]
    for text, reason in ((ONE % ("m", "2") * 2, "one name"), (ONE % ("m", "1"), "change nothing")):
        file.write_text(text)
        with pytest.raises(ValueError, match=reason):
            load(file)


def test_every_mutation_applies_and_names_tests_that_are_there() -> None:
    root = LIST.parents[2]
    for mutation in load():
        mutated(mutation, (root / mutation.file).read_text())
        # All tests there count as tests of servers (tests/conftest.py): nothing would be left to run.
        assert not mutation.quick or not all("/on_airflow/" in test for test in mutation.tests), mutation.name
        for test in mutation.tests:
            place, _, name = test.partition("::")
            assert (root / place).exists(), mutation.name
            assert not name or f"def {name.partition('[')[0]}(" in (root / place).read_text(), (
                f"{mutation.name}: {test}"
            )

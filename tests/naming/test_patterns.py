"""Java's regular expressions in Python: the matches that Java has, or a refusal, never another match."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from airmirror.naming.patterns import InvalidPattern, compile_list

# Made with Java 17: for each pattern the subjects that Pattern.matches() takes, null where Java refuses the pattern.
GOLDEN = json.loads((Path(__file__).parent / "java_patterns.json").read_text())

REFUSED = {
    r"(ab)\11",
    r"[a-z&&[^b]]",
    r"[a-d[m-p]]",
    r"[a&&b]",
    r"\p{IsLatin}+",
    r"\p{javaLowerCase}",
    r"\G a",
    r"\Rb",
    r"\cA",
    r"(?x)a b",
    r"(?u)a",
    r"(?iu)a",
    r"(?<=a*)b",
}
"""What Java takes and Python can't."""


@pytest.mark.parametrize("pattern", [pattern for pattern in GOLDEN["matches"] if pattern not in REFUSED])
def test_matches_what_java_matches(pattern: str) -> None:
    expected = GOLDEN["matches"][pattern]
    if expected is None:
        with pytest.raises(InvalidPattern):
            compile_list((pattern,))
    else:
        assert [subject for subject in GOLDEN["subjects"] if compile_list((pattern,)).fullmatch(subject)] == expected


@pytest.mark.parametrize("pattern", sorted(REFUSED))
def test_refuses_what_python_cannot_match(pattern: str) -> None:
    assert GOLDEN["matches"][pattern] is not None
    with pytest.raises(InvalidPattern):
        compile_list((pattern,))


def test_a_refusal_names_pattern_and_position() -> None:
    with pytest.raises(InvalidPattern) as caught:
        compile_list(("orders", "a[x&&y]", "b"))
    assert (caught.value.pattern, caught.value.position) == ("a[x&&y]", 3)
    assert "'a[x&&y]'" in str(caught.value) and "position 3" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_python_errors_are_mapped_back_to_the_position_in_javas_pattern() -> None:
    with pytest.raises(InvalidPattern) as caught:
        compile_list((r"\Qa.b\E", "*x"))
    assert (caught.value.pattern, caught.value.position) == ("*x", 0)


def test_a_list_is_one_pattern_so_flags_hold_for_what_follows() -> None:
    assert compile_list(("a", "(?i)b", "c")).fullmatch("C")
    assert not compile_list(("a", "(?i)b", "c")).fullmatch("A")


def test_an_empty_list_matches_nothing() -> None:
    assert not compile_list(()).fullmatch("")
    assert not compile_list(()).fullmatch("orders")

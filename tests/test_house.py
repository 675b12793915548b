"""The house's words: found in comments, docstrings and messages, and nowhere in names or quoted code."""

from __future__ import annotations

import house


def test_words_that_are_not_used_are_found_with_their_line():
    source = 'anew = 1  # read anew\nsaid = f"{anew} go on behind it"\n"""One line.\n\nSomebody."""\n'
    assert house.unused_words(source) == ["1: anew", "2: behind it", "5: Somebody"]


def test_names_and_quoted_code_are_not_words():
    assert (
        house.unused_words('beside = {"anew": 1}\n"""``anew`` of `beside`."""\n# one cluster behind two listeners\n')
        == []
    )

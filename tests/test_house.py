"""The house's words: found in comments, docstrings and messages, and nowhere in names or quoted code."""

from __future__ import annotations

import ast
from pathlib import Path

import typer

import house
from airmirror.cli.hold import hold_list
from airmirror.cli.run_window import run_window


def test_words_that_are_not_used_are_found_with_their_line():
    source = (
        'anew = 1  # read anew\nsaid = f"{anew} go on behind it"\n"""One line.\n\nSomebody\'s segment records."""\n'
    )
    assert house.unused_words(source) == ["1: anew", "2: behind it", "5: Somebody", "5: segment records"]
    assert house.unused_words("# claims of a flow, and rounds\n# a claim, and a round trip\n") == [
        "1: claims of a flow",
        "1: rounds",
    ]


def test_names_that_are_not_used_are_found_where_they_are_defined():
    source = """
class RoundOperator:
    round, purpose = 1, 2
    def renew(self, claim, seconds=round(1.5)): self.segment = claim
class Asked: round_trip = asked = reclaim = told
"""
    found = list(house.unused_names(Path("flows/way_back.py"), ast.parse(source)))
    assert sorted(found) == ["1: way_back", "2: RoundOperator", "3: round", "4: claim", "5: Asked"]


def test_rooms_and_what_they_import_are_counted_once():
    rooms = {"airmirror.errors": "", "airmirror.wire.mappings": "wire", "airmirror.wire.codecs": "wire"}
    assert house.arrows("airmirror", rooms | {"airmirror.ledger.loading": "ledger"}) == {"ledger → wire"}
    assert house.arrows("airmirror", dict.fromkeys(["airmirror.ledger.loading", *rooms], "one")) == set()


def test_names_and_quoted_code_are_not_words():
    assert (
        house.unused_words('beside = {"anew": 1}\n"""``anew`` of `beside`."""\n# one cluster behind two listeners\n')
        == []
    )


def test_words_without_an_actor_are_found_in_messages_alone():
    source = '"""Told."""\nsaid = f"it goes on at {told}"\nby = "nobody"\nway_out = "the way  back"  # nobody\n'
    assert list(house.words_of_messages(ast.parse(source))) == ["2: goes on", "4: way  back"]


def test_words_without_an_actor_are_found_in_a_page_but_not_in_its_quotations():
    page = "Nobody.\n\n```\nit goes on\n```\n\nIt goes\non.\n"
    assert list(house.words_of_page(page)) == ["1: Nobody", "7: goes\non"]


def test_a_command_whose_module_has_another_name_is_found():
    app, holds = typer.Typer(), typer.Typer()
    app.command("run-window")(run_window)
    app.command("window")(run_window)
    app.add_typer(holds, name="hold")
    app.add_typer(holds, name="holds")
    holds.command("list")(hold_list)
    found = list(house.misplaced(typer.main.get_command(app)))
    assert found == ["window: airmirror.cli.run_window", "holds list: airmirror.cli.hold"]


def test_a_name_of_two_classes_is_found_with_its_places():
    sources = {
        "a/one.py": "class Log: ...",
        "b/two.py": "class Log: ...\nclass _Own: ...",
        "b/three.py": "class _Own: ...",
    }
    found = list(house.defined_twice({Path(file): ast.parse(source) for file, source in sources.items()}))
    assert found == ["Log: a/one.py, b/two.py"]

"""Objects as rows of plain values, for tables and JSON: which column is which attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any


def rows_of(items: Iterable[object], columns: str, **made: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """A row for each item, of None in each column where it is None. ``columns``: their names in order, each that of an attribute
    too; or ``name=attribute``, where that may be one of another (``name=one.other``). ``made``: by a column's name, what makes
    its value of an item."""
    named = (each.partition("=") for each in columns.split())
    values = {name: made[name] if name in made else attrgetter(of or name) for name, _, of in named}
    assert made.keys() <= values.keys()
    return [{name: None if item is None else value(item) for name, value in values.items()} for item in items]


def row_of(item: object, columns: str, **made: Callable[[Any], Any]) -> dict[str, Any]:
    """The row of one item."""
    return rows_of([item], columns, **made)[0]

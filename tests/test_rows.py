"""Objects as rows: the columns' order, renamed and made ones, and that none is made for nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airmirror.rows import row_of, rows_of

ITEM = SimpleNamespace(topic="orders", end=7, facts=SimpleNamespace(by="anna"))


def test_a_row_has_the_columns_in_order_from_attributes_and_from_what_makes_them() -> None:
    row = row_of(ITEM, "by=facts.by topic last source_end=end", last=lambda item: item.end - 1)
    assert list(row.items()) == [("by", "anna"), ("topic", "orders"), ("last", 6), ("source_end", 7)]
    assert rows_of([ITEM, ITEM], "topic") == [{"topic": "orders"}] * 2


def test_a_column_that_is_made_and_not_named_is_a_mistake() -> None:
    with pytest.raises(AssertionError):
        rows_of([], "topic", last=lambda item: item.end)

"""``<source>-><target>.move.<name>.…``: move groups of a flow, and what is wrong with them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from airmirror.config import ConfigurationError, MoveGroup, explain, parse, survey
from airmirror.topics.names import check
from airmirror.topics.sound import sound

CLUSTERS = """\
clusters = east, west
east.bootstrap.servers = one:1
west.bootstrap.servers = two:2
east->west.enabled = true
"""
SHOP = "east->west.move.shop.topics = orders, pay.*\n"


def test_what_is_left_out_is_none() -> None:
    flow = parse(CLUSTERS + SHOP, "f").flow()
    assert flow.moves == (MoveGroup("shop", ("orders", "pay.*")),)
    assert pickle.loads(pickle.dumps(flow)).moves == flow.moves and flow.topics == (".*",)


def test_every_key_counts() -> None:
    lines = {
        "groups": "billing, audit-.*",
        "transactional.ids": "shop-.*",
        "principals": "User:ann; User:CN=app,O=shop ;",
    }
    text = CLUSTERS + SHOP + "".join(f"east->west.move.shop.{key} = {value}\n" for key, value in lines.items())
    text += "east->west.move.stock.topics = stock\neast->west.move.stock.groups =\n"
    configuration = parse(text, "f")
    shop, stock = configuration.flow().moves
    assert (shop.groups, shop.transactional_ids) == (("billing", "audit-.*"), ("shop-.*",))
    assert shop.principals == ("User:ann", "User:CN=app,O=shop")
    assert stock.groups == () and stock.transactional_ids is None, "empty is none of them, not set is discovered"
    assert not configuration.notes
    assert {f"<source>-><target>.move.<name>.{key}" for key in (*lines, "topics")} < {row.name for row in explain()}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("east->west.move.shop.groups = g", "line 5: east->west.move.shop.topics: must be set"),
        ("east->west.move.shop.topics = ", "line 5: east->west.move.shop.topics: must be set"),
        (SHOP + "east->west.move.shop.topic = x", "line 6: east->west.move.shop.topic: unknown key"),
        (SHOP + "east->west.move.shop.topic = x", "the closest known one is east->west.move.shop.topics"),
        (SHOP + "east->west.move.sh.op.topics = x", "line 6"),
        ("west->east.move.shop.topics = x", "there is no flow west->east in this file"),
        (
            SHOP + "east->west.move.b.topics = orders",
            "line 6: east->west.move.b.topics: 'orders' is in move group 'shop'",
        ),
    ],
)
def test_what_is_wrong_with_one_names_its_line(lines: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as failed:
        parse(f"{CLUSTERS}{lines}\n", "f")
    assert said in str(failed.value)
    (tmp_path / "f").write_text(f"{CLUSTERS}{lines}\nwest->north.enabled = true\n".replace("west\n", "west, north\n"))
    assert survey(tmp_path / "f").problems


def test_a_pattern_that_can_not_be_read_names_its_line(tmp_path: Path) -> None:
    text = CLUSTERS + SHOP + "east->west.move.shop.groups = (\n"
    with pytest.raises(ConfigurationError, match=r"line 6: east->west\.move\.shop\.groups"):
        check(parse(text, "f"))
    (tmp_path / "f").write_text(text + "west->east.enabled = true\n")
    found = sound(tmp_path / "f")
    assert found.broken == {"east->west"} and list(found.configuration.flows) == ["west->east"]

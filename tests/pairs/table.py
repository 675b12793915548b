"""The tables of pairs: what comes of a procedure where another one stands (``PAIRS``), and as things are (``ALONE``).

A cell is ``+`` *independent*, ``>`` *in this order*, ``-`` *nothing to do*, or a letter: the error by which it is refused
(``REFUSALS``); ``sign`` tells the first two from each other. ``test_cells`` asks each one on brokers, ``test_decisions`` without;
docs/protocol.md shows them (``page``).
"""

from __future__ import annotations

import re
import textwrap

from airmirror.errors import AirmirrorError
from airmirror.wire.owners import Owners
from pairs.conditions import CONDITIONS
from pairs.estate import STATES
from support import ROOT
from support.errors import all_errors

PAGE = ROOT / "docs" / "protocol.md"
SIGNS = {"+": "✓", ">": "→", "-": "–"}
PROCEDURES = {
    "failover": "failover",
    "undo of a failover": "its undo",
    "failback": "failback",
    "undo of a failback": "its undo",
    "migration": "migration",
    "migration with a return": "the same, with a reverse flow",
    "undo of a migration": "its undo",
    "take-over": "take-over",
    "hand-back": "hand-back",
    "rehearsal": "rehearsal",
}
MEETS = {name: words for name, words in PROCEDURES.items() if name != "migration with a return"} | {
    "window": "a window",
    "unfreeze": "`flow unfreeze`",
    "reset": "`reset`",
}

REFUSALS = {
    "F": "FlowFrozen",
    "R": "StillReturning",
    "U": "ReturnNotFinished",
    "N": "NotFrozen",
    "D": "NotDrained",
    "E": "GroupsNotExact",
    "G": "GroupsNotReady",
    "C": "CopiedSince",
    "P": "ProgressDiffers",
    "L": "LeftOnSource",
    "H": "HandbackRefused",
    "V": "NoReverseFlow",
    "Q": "SourceNotQuiet",
    "X": "CannotUndo",
    "A": "ReturnRefused",
}
MEETINGS = """
nothing             + - - - + - - + + + N +
failover            > > > - F - F F F F > F
undo of a failover  + - - - + - - + + + N +
return              R R > > F - F F F F R F
failback            + - - - + - - + + + N +
undo of a failback  U U > - F - F F F F U F
consumers           + - - - + > - + + + N +
producers           + - - - + > - + + + N +
move returns        + - - - + > - R + + N +
undo of a migration + - - - + - - + + + N +
take-over           E - - - G - - + + + N +
hand-back           D - - - D - > C + P N +
rehearsal           + - - - + - - + + + N +
"""
THINGS = """
following     > + > > > > > - > +
frozen        + + + + > > + + + +
held          D + L + D D + + H +
reset         + + + + + + + - + +
one-way       + + V V + V + + + +
compacted     + + + + + + + + + +
append time   + + A - + A + + + +
transactional + + + + + + + + + +
open          Q X Q + D D X + + +
aggregate     + + A - + A + + + +
prefix        + + + + + + + + + +
identity      + + + + + + + + + +
"""


def cells(text: str, columns: list[str]) -> dict[tuple[str, str], str]:
    """The cells of a table by row and column."""
    found = {}
    for line in text.strip().splitlines():
        words = line.split()
        row, its = " ".join(words[: -len(columns)]), words[-len(columns) :]
        found |= {(row, column): REFUSALS.get(cell, cell) for column, cell in zip(columns, its, strict=True)}
    return found


PAIRS = cells(MEETINGS, list(MEETS))
ALONE = cells(THINGS, list(PROCEDURES))
DONE = ("+", ">")
FREEZES = (
    "failover",
    "migration",
    "migration with a return",
)  # orders that continue after the freeze, where it is there


def sign(found: str, order: str, owners: Owners, topic: str, plain: str = "+", *, ends: bool = False) -> str:
    """What came of an order, ``found``, as a cell has it. What was done (``+``) is *in this order* where it is about what another
    one has left: nothing would have come of it where no other one had run (``plain``), what it freezes first (``topic``, "": the
    flow) was frozen already (``owners``: before it), or it ``ends`` a window that was at work."""
    was_frozen = order in FREEZES and owners.why_frozen(topic) is not None
    return ">" if found == "+" and (plain != "+" or was_frozen or ends) else found


def refusal(error: AirmirrorError) -> str:
    """The name of an error by which an order is refused, as the tables have it: a kind of NotDrained is NotDrained."""
    names = [each.__name__ for each in type(error).__mro__]
    return next((name for name in names if name in REFUSALS.values()), names[0])


def page() -> str:
    """The text of docs/protocol.md, with its tables of pairs."""
    errors = list(REFUSALS.values())
    parts = {
        "meetings": _table(PAIRS, MEETS, {name: each.words for name, each in STATES.items()}, errors),
        "things": _table(ALONE, PROCEDURES, {name: each.words for name, each in CONDITIONS.items()}, errors),
        "refusals": _refusals(errors),
    }
    return re.sub(
        r"(<!-- pairs: (\w+) -->\n).*?(?=<!-- end -->)",
        lambda found: found[1] + parts[found[2]],
        PAGE.read_text(),
        flags=re.DOTALL,
    )


def _table(cells: dict[tuple[str, str], str], columns: dict[str, str], rows: dict[str, str], errors: list[str]) -> str:
    lines = [["", *columns.values()], ["---"] * (len(columns) + 1)]
    for row, words in rows.items():
        its = (cells[row, column] for column in columns)
        lines.append([words, *(SIGNS.get(cell) or f"✗ {errors.index(cell) + 1}" for cell in its)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _refusals(names: list[str]) -> str:
    """The errors by their numbers; docs/errors.md says when each is raised."""
    rooms = {each.__name__: each.__module__.split(".")[1] for each in all_errors()}
    links = (f"{number} [`{name}`](errors.md#{rooms[name]})" for number, name in enumerate(names, 1))
    return textwrap.fill(", ".join(links), 140, break_long_words=False, break_on_hyphens=False) + "\n"

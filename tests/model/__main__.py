"""``python -m model``: explore everything, name the states, and find again what was found before. Status 1 if not."""

from __future__ import annotations

import argparse
import sys

from model.explore import explore
from model.owner_scopes import BROKEN as OWNERS_BROKEN
from model.owner_scopes import scopes
from model.owners import Rules as OwnerRules
from model.owners import explore as explore_owners
from model.scopes import BROKEN, DEEP, QUICK, RULES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m model", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only what make test explores")
    parser.add_argument("--most", type=int, default=3_000_000, help="states of a scope, at most")
    chosen = parser.parse_args()
    failed = 0
    for scope in QUICK if chosen.quick else DEEP:
        found = explore(scope, RULES, chosen.most)
        failed += bool(found.wrong)
        print(found, flush=True)
    for name, (scope, rules, wrong) in BROKEN.items():
        found = explore(scope, rules, chosen.most)
        failed += not found.wrong.startswith(wrong)
        print(f"\nput back: {name}\n{found}", flush=True)
    failed += owners()
    sys.exit(1 if failed else 0)


def owners() -> int:
    """Explore who may write a topic; how often it was not as it should be."""
    failed = 0
    for name, world in scopes(OwnerRules()).items():
        states, wrong, way = explore_owners(world, OwnerRules())
        failed += bool(wrong)
        print(f"{name}: {states:,} states (all): {wrong or 'nobody writes for what is not his own'}", *way, sep="\n  ")
    for name, (rules, scope, expected) in OWNERS_BROKEN.items():
        _, wrong, way = explore_owners(scopes(rules)[scope], rules)
        failed += not wrong.startswith(expected)
        print(f"\nput back: {name}: {wrong}", *way, sep="\n  ")
    return failed


if __name__ == "__main__":
    main()

"""``python -m model``: explore everything, name the states, and find again what was found before. Status 1 if not."""

from __future__ import annotations

import argparse
import sys

from model.explore import explore
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
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Rename Airmirror's own words in a checkout: ``rename.py CHECKOUT [TERM…]`` (issue 35, section 2).

Each term is a list of ordered substitutions over the tracked text files, with exceptions, after its files were moved
(``git mv``). The terms are in rename_terms.py, in the order in which they must be done; without names all are done. A
checkout that was renamed before is left as it is, but for what is new in it. Nothing is committed.
Afterwards: ruff check --fix --select I . ; ruff format . ; support.documents ; and the checks.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import textwrap
import tokenize
from fnmatch import fnmatchcase
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from rename_terms import TERMS, Term  # noqa: E402

TEXT = (".py", ".md", ".toml", ".tsx", ".ts", ".css", ".json", ".yaml", ".yml", ".sh", ".sql", ".properties", ".example")
NAMES = ("Makefile", "Dockerfile", "run", ".gitignore", ".dockerignore")
LIMIT = 130  # of a line of Python
NEVER = ("LICENSE", "*requirements*", "*package-lock.json", "tests/constraints/*", "*.tsv", "tests/naming/java_patterns.json")


def tracked(checkout: Path) -> list[str]:
    listed = subprocess.run(["git", "-C", checkout, "ls-files", "-z"], check=True, capture_output=True, text=True)
    return [path for path in listed.stdout.split("\0") if path and (checkout / path).is_file()]


def is_text(path: str) -> bool:
    known = path.endswith(TEXT) or Path(path).name in NAMES
    return known and not any(fnmatchcase(path, each) for each in NEVER)


def move(checkout: Path, old: str, new: str) -> None:
    if (checkout / old).exists() and not (checkout / new).exists():
        (checkout / new).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "-C", checkout, "mv", old, new], check=True)


def renamed(term: Term, path: str, text: str) -> str:
    if not re.search(term.hint, text, re.IGNORECASE):
        return text
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\1"

    for pattern, *files in term.keep:
        if applies(path, files):
            text = re.sub(pattern, keep, text)
    for pattern, new, *files in term.rules:
        if applies(path, files):
            text = re.sub(pattern, new, text)
    while "\0" in text:
        text = re.sub("\0(\\d+)\1", lambda found: kept[int(found[1])], text)
    return text


def applies(path: str, files: list[str]) -> bool:
    """No pattern: every file; one that begins with "!" leaves files out."""
    no = [each[1:] for each in files if each.startswith("!")]
    yes = [each for each in files if not each.startswith("!")]
    return (not yes or any(fnmatchcase(path, each) for each in yes)) and not any(fnmatchcase(path, each) for each in no)


def wrapped(text: str) -> str:
    """Let no line of a docstring be longer than LIMIT: what is too much goes to the next one of its paragraph."""
    lines = text.split("\n")
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return text
    for token in reversed([each for each in tokens if each.type == tokenize.STRING and each.string.startswith('"""')]):
        first, last = token.start[0] - 1, token.end[0] - 1
        if any(len(line) > LIMIT for line in lines[first : last + 1]) and lines[last].endswith('"""'):
            lines[first : last + 1] = filled(lines[first : last + 1])
    return "\n".join(lines)


def filled(lines: list[str]) -> list[str]:
    """Fill again from each line that is too long to the end of its paragraph; lists and code stay as they are."""
    found: list[str] = []
    while lines:
        line = lines.pop(0)
        if len(line) <= LIMIT:
            found.append(line)
            continue
        indent = re.match(r" *", line)[0]  # type: ignore[index]
        rest = [line.strip()]
        while lines and (each := lines[0]).strip() and re.match(r" *", each)[0] == indent and not each.lstrip().startswith(("- ", '"""')):  # type: ignore[index]
            rest.append(lines.pop(0).strip())
        found += textwrap.wrap(" ".join(rest), LIMIT, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return found


def main() -> None:
    checkout, names = Path(sys.argv[1]), sys.argv[2:]
    unknown = set(names) - {each.name for each in TERMS}
    if unknown:
        sys.exit(f"no such term: {', '.join(sorted(unknown))}; there are: {', '.join(each.name for each in TERMS)}")
    for term in TERMS:
        if names and term.name not in names:
            continue
        for old, new in term.moves:
            move(checkout, old, new)
        changed = 0
        for path in filter(is_text, tracked(checkout)):
            before = (checkout / path).read_text()
            after = renamed(term, path, before)
            if after != before:
                (checkout / path).write_text(after)
                changed += 1
        print(f"{term.name}: {changed} files")
    for path in (each for each in tracked(checkout) if each.endswith(".py")):
        before = (checkout / path).read_text()
        if any(len(line) > LIMIT for line in before.split("\n")) and (after := wrapped(before)) != before:
            (checkout / path).write_text(after)


if __name__ == "__main__":
    main()

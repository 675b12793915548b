"""The figures of the house: rooms and what they import, sizes, positional calls, words, first words of docstrings, names.

Run as a program (``make check``) it measures ``include/airmirror`` and exits with 1 if a figure is over its limit.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grimp
import typer

from airmirror.cli.main import app

PACKAGE = Path(__file__).resolve().parents[1] / "include" / "airmirror"
RIDDLES = ("What", "Where", "Whether", "Which", "How")  # first words that make a clause the subject
# Words that engineers misread or never say. (Say: again; an operator, another writer; next to; this many; its own; after.)
# (A segment is Kafka's log segment. Say: mapping record, mapping topic; the lease of a flow; post-window tasks.)
UNUSED = re.compile(
    r"\b(?:anew|somebody|beside|so many|the own|behind (?:it|its|them|what|the flow)|segment (?:records?|topics?)"
    r"|claims? (?:of|on) (?:a|the|its) flows?|rounds)\b",
    re.IGNORECASE,
)
# The same in names of modules, classes, functions, arguments and variables, and words of classes that nobody would guess.
UNUSED_NAMES = re.compile(
    r"(?:^|_)(?:claims?|rounds?(?!_trip)|segments?|(?:way|flow)_back|opposite_(?:flow|direction)|judgements?)(?:_|$)"
)
RIDDLE_CLASSES = re.compile("Pen|Scout|Meanwhile|Late|Held|Granted|Kept|Looked|Asked|Told|Course|Judged|NotJudged")
# Words that hide who acts, counted in what users read. (Say who does what; resumes at; replicated; the reverse flow.)
ACTORLESS = re.compile(
    r"\b(?:told|nobody|go(?:es)?\s+on|gone\s+on|stands|crossed|(?:way|flow)\s+back|opposite\s+(?:flow|direction))\b",
    re.IGNORECASE,
)
PROCEDURES = {"runbooks", "cli", "on_airflow"}  # rooms whose messages are counted by themselves
WITHOUT_ACTOR = {"pages": 0, "messages of procedures": 0, "other messages": 0}  # the most, by where they are
TEXTS = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
FLAT = "runbooks"  # a room whose own rooms count as it
MANY = 6  # positional arguments from here on are counted
# Functions that take any number of values: they have no names for them.
VARIADIC = {
    "Table",
    "create_table",
    "table",
    "Index",
    "select",
    "pack",
    "pack_into",
    "command",
    "debug",
    "info",
    "warning",
    "print",
}


@dataclass(frozen=True)
class Figure:
    """One measurement; ``worst`` names the places that it comes from, the worst first."""

    name: str
    value: float
    limit: float
    worst: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        return self.value > self.limit


def figures(package: Path = PACKAGE) -> list[Figure]:
    """Measure a package's source files."""
    trees = {file: ast.parse(file.read_text()) for file in sorted(package.rglob("*.py"))}
    lines = {file: len(file.read_text().splitlines()) for file in trees}
    skips = {file: file.read_text().count("# fmt: skip") for file in trees}
    longest = max(lines, key=lambda file: lines[file])
    functions = sorted(_functions(trees), key=lambda found: -found[0])
    modules = circles(package.name)
    rooms = circles(package.name, rooms=True)
    calls = [(file, node) for file, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    positional = [
        f"{file.relative_to(package)}:{node.lineno}"
        for file, node in calls
        if len(node.args) >= MANY and _name(node) not in VARIADIC
    ]
    docs = list(_docstrings(trees))
    riddles = [where for where, text in docs if text.split(maxsplit=1)[0] in RIDDLES]
    doubles = list(defined_twice(trees))
    strangers = list(misplaced(typer.main.get_command(app)))
    words = [f"{file.relative_to(package)}:{found}" for file in trees for found in unused_words(file.read_text())]
    names = [
        f"{file.relative_to(package)}:{found}" for file, tree in trees.items() for found in unused_names(file, tree)
    ]
    imports = arrows(package.name, {_module(file, package): _room(file, package) for file in trees})
    pages = {f"{page.parent.name}/{page.name}": len(page.read_text().splitlines()) for page in _pages(package)}
    return [
        # What the package may grow to before something has to become simpler (issue 35).
        Figure("lines of the package", sum(lines.values()), 56_700),
        Figure("rooms", len({_room(file, package) for file in trees} - {""}), 32),
        Figure("arrows between rooms", len(imports), 180, tuple(sorted(imports))),
        Figure("files of windows/", sum(file.parent.name == "windows" for file in trees), 36),
        Figure(
            "lines of the README and docs/",
            sum(pages.values()),
            4_400,
            tuple(sorted(pages, key=lambda page: -pages[page])),
        ),
        Figure("circles of modules", len(modules), 0, tuple(modules)),
        Figure("circles of rooms", len(rooms), 0, tuple(rooms)),
        Figure(
            "lines of the longest file",
            lines[longest],
            400,
            (str(longest.relative_to(package)),),
        ),
        Figure("lines of the longest function", functions[0][0], 75, (functions[0][1],)),
        Figure(
            "calls with 6 and more positional arguments, in 1,000",
            _rate(positional, calls, 1000),
            4,
            tuple(positional),
        ),
        Figure("docstrings that begin with a riddle, %", _rate(riddles, docs, 100), 2, tuple(riddles)),
        Figure("words that are not used", len(words), 0, tuple(words)),
        Figure("names that are not used", len(names), 0, tuple(names)),
        *_without_actor(package, trees),
        Figure("names of public classes that are defined twice", len(doubles), 0, tuple(doubles)),
        Figure("commands in a module of another name", len(strangers), 0, tuple(strangers)),
        Figure("# fmt: skip", sum(skips.values()), 20),
    ]


def _without_actor(package: Path, trees: dict[Path, ast.Module]) -> list[Figure]:
    """Count the words that hide who acts: in pages and alerts, in messages of procedures, and in all other messages."""
    pages = [*_pages(package), *sorted((package.parent / "monitoring").glob("*.yml"))]
    places: dict[str, list[str]] = {"pages": [], "messages of procedures": [], "other messages": []}
    for page in pages:
        places["pages"] += [f"{page.name}:{found}" for found in words_of_page(page.read_text())]
    for file, tree in trees.items():
        name = file.relative_to(package)
        where = "messages of procedures" if name.parts[0] in PROCEDURES else "other messages"
        places[where] += [f"{name}:{found}" for found in words_of_messages(tree)]
    return [
        Figure(f"words without an actor in {where}", len(found), WITHOUT_ACTOR[where], tuple(found))
        for where, found in places.items()
    ]


def unused_words(source: str) -> list[str]:
    """Find the words that are not used in comments, docstrings and messages: line and word. Single words are names."""
    return [
        f"{token.start[0] + token.string.count(chr(10), 0, found.start())}: {found[0]}"
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type in TEXTS and " " in token.string
        for found in UNUSED.finditer(re.sub(r"`[^`\n]*`|\{[^{}\n]*\}", lambda code: "_" * len(code[0]), token.string))
    ]


def unused_names(file: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the names of a module, and those that it defines, that are not used: line and name."""
    found = [(1, file.stem)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.append((node.lineno, node.name))
        elif isinstance(node, ast.arg):
            found.append((node.lineno, node.arg))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append((node.lineno, node.id))
    for line, name in found:
        if RIDDLE_CLASSES.fullmatch(name) or UNUSED_NAMES.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()):
            yield f"{line}: {name}"


def words_of_messages(tree: ast.Module) -> Iterator[str]:
    """Yield the words without an actor in a module's messages: line and word. Docstrings and single words are none."""
    docs = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = {node for node in ast.walk(tree) if isinstance(node, ast.Constant) and " " in str(node.value)} - docs
    for text in sorted(texts, key=lambda node: node.lineno):
        yield from (f"{text.lineno}: {found[0]}" for found in ACTORLESS.finditer(str(text.value)))


def words_of_page(page: str) -> Iterator[str]:
    """Yield the words without an actor in a page's prose, its quoted output left out: line and word."""
    prose = re.sub(r"^ *```.*?^ *```", lambda block: "\n" * block[0].count("\n"), page, flags=re.MULTILINE | re.DOTALL)
    for found in ACTORLESS.finditer(prose):
        yield f"{prose.count(chr(10), 0, found.start()) + 1}: {found[0]}"


def defined_twice(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield the names of public classes that more than one module defines, with these modules."""
    places: dict[str, list[str]] = {}
    for file, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(f"{file.parent.name}/{file.name}")
    yield from (f"{name}: {', '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1)


def misplaced(command: Any, *words: str) -> Iterator[str]:
    """Yield the commands of the package whose module has the name of none of their words; a runbook's are made from data."""
    module, names = getattr(command.callback, "__module__", ""), [word.replace("-", "_") for word in words]
    names.append("runbooks")
    if words and module.startswith(f"{PACKAGE.name}.") and module.rpartition(".")[2] not in names:
        yield f"{' '.join(words)}: {module}"
    for word, inner in getattr(command, "commands", {}).items():
        yield from misplaced(inner, *words, word)


def arrows(package: str, rooms: dict[str, str]) -> set[str]:
    """The pairs of rooms of which one imports the other. ``rooms``: the room of each module; the package itself is none."""
    graph = grimp.build_graph(package)
    pairs = {
        (rooms[module], rooms[imported])
        for module in graph.modules & rooms.keys()
        for imported in graph.find_modules_directly_imported_by(module) & rooms.keys()
    }
    return {f"{one} → {other}" for one, other in pairs if one != other and one and other}


def _module(file: Path, package: Path) -> str:
    return ".".join((package.name, *file.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")


def _room(file: Path, package: Path) -> str:
    """The folder of a file, below the package; empty: it lies in no folder."""
    folder = file.parent.relative_to(package).as_posix()
    return FLAT if folder.startswith(FLAT) else folder.removeprefix(".")


def _pages(package: Path) -> list[Path]:
    return [*sorted((package.parents[1] / "docs").glob("*.md")), package.parents[1] / "README.md"]


def circles(package: str, *, rooms: bool = False) -> list[str]:
    """Pairs of modules, or of the folders below the package, that import each other by whatever way."""
    graph = grimp.build_graph(package)
    if rooms:
        for child in graph.find_children(package):
            if graph.find_children(child):
                graph.squash_module(child)
    found = set()
    for module in graph.modules - {package}:
        for imported in graph.find_modules_directly_imported_by(module) - {package, module}:
            if graph.find_shortest_chain(importer=imported, imported=module, as_packages=False):
                found.add(" ↔ ".join(sorted((module, imported))))
    return sorted(found)


def _name(call: ast.Call) -> str:
    """The last part of the called function's name; empty where it has none."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _rate(part: Sized, whole: Sized, per: int) -> float:
    return round(per * len(part) / max(1, len(whole)), 1)


def _functions(trees: dict[Path, ast.Module]) -> Iterator[tuple[int, str]]:
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{file.name}: {node.name}"


def _docstrings(trees: dict[Path, ast.Module]) -> Iterator[tuple[str, str]]:
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    yield f"{file.name}:{getattr(node, 'lineno', 1)}", text


def main() -> int:
    """Print every figure; name the places of those that are over their limit."""
    found = figures()
    for figure in found:
        print(f"{'over' if figure.is_over else 'ok':5}{figure.name}: {figure.value:g} (at most {figure.limit:g})")
        if figure.is_over:
            print("".join(f"       {place}\n" for place in figure.worst[:10]), end="")
    return int(any(figure.is_over for figure in found))


if __name__ == "__main__":
    sys.exit(main())

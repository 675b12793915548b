"""Writing a document again: all of it or nothing, and never over what is there."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from airmirror.errors import AirmirrorError
from airmirror.offsets.files.model import Answers, PositionFile


class PositionsNotWritten(AirmirrorError, bad_input=True):
    """A file of positions could not be written; nothing is there."""

    says = "{0.path} was not written: {0.reason}"
    path: str
    reason: str


def refuse_existing(to: Path) -> None:
    """Raises PositionsNotWritten where something is there already, or no directory for it."""
    if to.exists() or to.is_symlink():
        raise PositionsNotWritten(str(to), "it is there already: name another one, or remove it first")
    if not to.absolute().parent.is_dir():
        raise PositionsNotWritten(str(to), "there is no such directory")


def write(document: PositionFile, answers: Answers, to: Path) -> None:
    """Write it in one step: whoever looks sees nothing, or the whole. Raises PositionsNotWritten, BadPositions."""
    refuse_existing(to)
    texts = document.texts(answers)
    try:
        with tempfile.TemporaryDirectory(dir=to.absolute().parent, prefix=f".{to.name}-") as scratch:
            made = Path(scratch, "made")
            if document.copied is None:
                made.write_text(texts[""], "utf-8")
                os.link(made, to)  # unlike a rename it refuses to replace
            else:
                _directory(document, texts, made)
                refuse_existing(to)
                made.rename(to)  # over a directory that is not empty it fails too
    except OSError as error:
        raise PositionsNotWritten(str(to), error.strerror or str(error)) from error


def _directory(document: PositionFile, texts: dict[str, str], made: Path) -> None:
    source = document.copied
    assert source is not None
    left_out = set(document.left_out)

    def ignored(directory: str, names: list[str]) -> set[str]:
        below = Path(directory).relative_to(source)
        return {name for name in names if (below / name).as_posix() in left_out}

    shutil.copytree(source, made, ignore=ignored, symlinks=True)
    for name, text in texts.items():
        file = made / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8", newline="")

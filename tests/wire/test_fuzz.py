"""Whatever bytes a decoder is given, it returns a value or raises our own error: it never hangs, never reads what lies
behind them, and never allocates by a length that only they claim.

100,000 mutations of the corpus in ``tests/wire/corpus`` (seeded: the same ones every time, unless AIRMIRROR_FUZZ_SEED is
set) and what hypothesis thinks of. A case that fails names its bytes; keep them in the corpus.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import airmirror.wire
import support.decoders
from airmirror.errors import AirmirrorError
from support.decoders import DECODERS, Decoder
from support.examples import examples, share
from support.fuzzing import guarded, mutated

CORPUS = Path(__file__).parent / "corpus"
CASES = share(100_000)
SEED = int(os.environ.get("AIRMIRROR_FUZZ_SEED", "1"))
MEGABYTES = 600  # more than the largest output that a codec may have


def corpus(decoder: Decoder) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / decoder.name).iterdir())]


def check(decoder: Decoder, data: bytes) -> bool:
    """Whether the bytes were decoded; fails for any error that is not our own."""
    try:
        decoder.decode(data)
    except AirmirrorError as error:
        assert str(error)
        return False
    except BaseException as error:
        raise AssertionError(f"{decoder}: {data.hex()}") from error
    return True


def test_every_decoder_is_fuzzed() -> None:
    """A function of ``wire/`` that takes bytes apart, by a name as these have, belongs into ``support.decoders``."""
    used = inspect.getsource(support.decoders)
    for module in pkgutil.iter_modules(airmirror.wire.__path__, "airmirror.wire."):
        for name, function in inspect.getmembers(importlib.import_module(module.name), inspect.isfunction):
            if function.__module__ == module.name and name.startswith(("decode", "decompress", "parse", "index")):
                assert f"{name}(" in used or f"{name})" in used, f"{module.name}.{name} is not fuzzed"


def mutations(decoder: Decoder, cases: int) -> int:
    """Check so many mutations of the corpus; how many could be decoded."""
    kept = corpus(decoder)
    chance = random.Random(f"{SEED} {decoder}")
    for data in kept:  # loops are compiled, and libraries load, without the guard
        check(decoder, data)
    decoded = 0
    with guarded(seconds=120, megabytes=MEGABYTES):
        for _ in range(cases):
            data = mutated(kept, chance)
            if chance.random() < 0.9:
                decoder.mend(data)
            decoded += check(decoder, bytes(data))
    return decoded


@pytest.mark.parametrize("decoder", DECODERS, ids=str)
def test_examples_are_decoded(decoder: Decoder) -> None:
    assert all(check(decoder, data) for data in decoder.examples())


@pytest.mark.parametrize("decoder", DECODERS, ids=str)
def test_the_corpus_and_its_mutations(decoder: Decoder) -> None:
    assert len(corpus(decoder)) >= len(list(decoder.examples())), "tests/wire/corpus is not complete"
    cases = -(-CASES // len(DECODERS))
    assert 0 < mutations(decoder, cases) < cases


@pytest.mark.long
def test_compiled_loops_stay_within_their_arrays() -> None:
    """The same mutations where memory that may not be touched lies before or behind every array that a loop is given."""
    names = ("batches", "runs-of-batches", "messages", "messages-inside", "records")
    program = (
        "from support.decoders import DECODERS\n"
        "from support.fences import fenced\n"
        "from wire.test_fuzz import mutations\n"
        f"for decoder in DECODERS:\n    if decoder.name in {names}:\n"
        "        with fenced() as calls:\n            print(decoder, mutations(decoder, 20_000), len(calls))\n"
    )
    tests = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (tests.parent / "include", tests)))}
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, f"{answer.returncode} {answer.stderr[-2000:]}"
    told = answer.stdout.splitlines()
    assert len(told) == len(names) and all(int(line.split()[-1]) > 1000 for line in told), told


@pytest.mark.parametrize("decoder", DECODERS, ids=str)
@examples(100, database=None)
@given(data=st.data())
def test_what_hypothesis_thinks_of(decoder: Decoder, data: st.DataObject) -> None:
    example = data.draw(st.sampled_from(list(decoder.examples())))
    cut = data.draw(st.integers(0, len(example)))
    check(decoder, data.draw(st.binary(max_size=200)))
    check(decoder, example[:cut] + data.draw(st.binary(max_size=50)) + example[cut + data.draw(st.integers(0, 50)) :])
    check(decoder, example[:cut])

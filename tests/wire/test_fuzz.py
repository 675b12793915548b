"""Whatever bytes a decoder is given, it returns a value or raises our own error: it never hangs, never reads what lies
behind them, and never allocates by a length that only they claim.

100,000 mutations of the corpus in ``tests/wire/corpus`` (seeded: the same ones every time, unless AIRMIRROR_FUZZ_SEED is
set) and what hypothesis thinks of. A case that fails names its bytes; keep them in the corpus.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airmirror.errors import AirmirrorError
from support.decoders import DECODERS, Decoder
from support.fuzzing import guarded, mutated

CORPUS = Path(__file__).parent / "corpus"
CASES = 100_000
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


@pytest.mark.parametrize("decoder", DECODERS, ids=str)
def test_examples_are_decoded(decoder: Decoder) -> None:
    assert all(check(decoder, data) for data in decoder.examples())


@pytest.mark.parametrize("decoder", DECODERS, ids=str)
def test_the_corpus_and_its_mutations(decoder: Decoder) -> None:
    kept = corpus(decoder)
    assert len(kept) >= len(list(decoder.examples())), "tests/wire/corpus is not complete"
    chance = random.Random(f"{SEED} {decoder}")
    for data in kept:  # numba compiles, and libraries load, without the guard
        check(decoder, data)
    decoded = 0
    cases = -(-CASES // len(DECODERS))
    with guarded(seconds=120, megabytes=MEGABYTES):
        for _ in range(cases):
            data = mutated(kept, chance)
            if chance.random() < 0.9:
                decoder.mend(data)
            decoded += check(decoder, bytes(data))
    assert decoded < cases, "nothing was refused"


@pytest.mark.parametrize("decoder", DECODERS, ids=str)
@settings(max_examples=100, deadline=None, database=None)
@given(data=st.data())
def test_what_hypothesis_thinks_of(decoder: Decoder, data: st.DataObject) -> None:
    example = data.draw(st.sampled_from(list(decoder.examples())))
    cut = data.draw(st.integers(0, len(example)))
    check(decoder, data.draw(st.binary(max_size=200)))
    check(decoder, example[:cut] + data.draw(st.binary(max_size=50)) + example[cut + data.draw(st.integers(0, 50)) :])
    check(decoder, example[:cut])

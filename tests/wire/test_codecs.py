"""zstd as brokers and clients may send it: frame after frame, cut off, with something after it, and more than is taken."""

from __future__ import annotations

import random

import pytest
from backports import zstd

from airmirror.wire.codecs import CHUNK, DecompressionFailed, TooLarge, compress, decompress

ZSTD = 4
PLAIN = random.Random(1).randbytes(3 * CHUNK // 2)  # which no codec makes smaller: its frame is longer than a piece


@pytest.mark.parametrize("plain", [b"", b"a", b"orders" * 100_000, PLAIN], ids=["nothing", "one", "dense", "random"])
def test_what_is_compressed_comes_back(plain: bytes) -> None:
    assert decompress(ZSTD, memoryview(compress(ZSTD, plain))) == plain


def test_frames_follow_each_other_and_begin_anywhere_in_a_piece() -> None:
    frames = [PLAIN, b"", b"two", b"", *(b"%d" % number for number in range(1000)), PLAIN]
    payload = b"".join(zstd.compress(frame) for frame in frames)
    assert decompress(ZSTD, memoryview(payload)) == b"".join(frames)


def test_no_payload_at_all_holds_nothing() -> None:
    assert decompress(ZSTD, memoryview(b"")) == b""


@pytest.mark.parametrize("plain", [b"orders" * 1000, PLAIN], ids=["dense", "random"])
def test_what_is_cut_off_is_no_shorter_payload(plain: bytes) -> None:
    whole = zstd.compress(plain)
    for end in (1, 5, len(whole) // 2, len(whole) - 1):
        with pytest.raises(DecompressionFailed):
            decompress(ZSTD, memoryview(whole[:end]))
    with pytest.raises(DecompressionFailed):
        decompress(ZSTD, memoryview(zstd.compress(b"before") + whole[:-1]))


def test_what_follows_a_frame_and_is_none_is_refused() -> None:
    with pytest.raises(DecompressionFailed):
        decompress(ZSTD, memoryview(zstd.compress(b"orders") + b"something"))


def test_a_small_frame_of_much_is_not_unpacked() -> None:
    bomb = zstd.compress(bytes(64 << 20))
    assert len(bomb) < 10_000
    with pytest.raises(TooLarge):
        decompress(ZSTD, memoryview(bomb), 1 << 20)
    assert len(decompress(ZSTD, memoryview(bomb), 64 << 20)) == 64 << 20

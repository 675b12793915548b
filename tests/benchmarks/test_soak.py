"""SOAK.md says what was measured: growth, and whether it is within its limit."""

from benchmarks.soak import GROWTH_LIMIT, MIB, Usage, leaks, report

BEFORE = Usage(windows=100, resident=150 * MIB, sockets=1, descriptors=11, threads=1)


def last_line(after: Usage) -> str:
    [line] = [each for each in report([], [BEFORE, after], [], 200, 60.0, 0.0).splitlines() if each.startswith("From")]
    return line


def test_growth_within_the_limits() -> None:
    after = Usage(windows=200, resident=152 * MIB, sockets=1, descriptors=11, threads=1)
    assert leaks([BEFORE, after]) == []
    assert "resident +2.0 MiB (at most 152.0 MiB in between" in last_line(after)
    assert last_line(after).endswith("threads +0 (the limit is 0): within the limits.")


def test_growth_past_the_limits_is_named() -> None:
    after = Usage(windows=200, resident=150 * MIB + GROWTH_LIMIT + 1, sockets=3, descriptors=11, threads=1)
    assert leaks([BEFORE, after]) == ["sockets", "memory"]
    assert "sockets +2" in last_line(after) and last_line(after).endswith("more than may be: sockets, memory.")


def test_one_line_tells_nothing() -> None:
    assert "no two lines" in report([], [BEFORE], [], 100, 60.0, 0.0)

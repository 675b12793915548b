"""SOAK.md says what was measured: growth, and whether it is within its limit."""

from dataclasses import replace

import pytest
from benchmarks.everything import Hour, Sample
from benchmarks.soak import GROWTH_LIMIT, MIB, Usage, leaks, report

BEFORE = Usage(windows=100, resident=150 * MIB, sockets=1, descriptors=11, threads=1)
EARLY = Sample(
    minutes=2, resident=90 * MIB, descriptors=9, threads=3, lag=90.0, rows=10, at_rest=True
)  # has not begun to count
REST = Sample(minutes=11, resident=100 * MIB, descriptors=30, threads=5, lag=1.0, rows=200, at_rest=True)
BUSY = Sample(minutes=30, resident=200 * MIB, descriptors=99, threads=50, lag=4.0, rows=900, at_rest=False)
MIDDLE = replace(REST, minutes=35, resident=105 * MIB)
LAST = replace(REST, minutes=60, resident=104 * MIB)
DONE = {"migrations": 10, "rehearsals": 5}


def said(usages: list[Usage], hour: Hour | None = None) -> list[str]:
    return report([], usages, hour or Hour([EARLY, REST, BUSY, LAST], **DONE), 200, 60.0, 0.0).splitlines()


def last_line(after: Usage) -> str:
    [line] = [each for each in said([BEFORE, after]) if each.startswith("From 100")]
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
    assert "There are no two lines to compare." in said([BEFORE])


@pytest.mark.parametrize(
    ("changed", "done", "wrong"),
    [
        ({}, {}, []),
        ({"last": replace(LAST, resident=106 * MIB)}, {}, ["memory"]),
        ({"middle": replace(MIDDLE, resident=106 * MIB)}, {}, ["memory"]),  # and given back by the end
        ({"last": replace(LAST, descriptors=31, threads=6, rows=201)}, {}, ["descriptors", "threads", "rows"]),
        ({"busy": replace(BUSY, lag=61.0)}, {}, ["lag"]),
        ({}, {"migrations": 9}, ["migrations"]),
        ({}, {"rehearsals": 4}, ["rehearsals"]),
    ],
)
def test_an_hour_of_everything_is_judged_at_rest_and_late_at_any_time(
    changed: dict[str, Sample], done: dict[str, int], wrong: list[str]
) -> None:
    samples = {"early": EARLY, "rest": REST, "busy": BUSY, "middle": MIDDLE, "last": LAST} | changed
    hour = Hour(list(samples.values()), **(DONE | done))
    assert hour.wrong() == wrong
    [line] = [each for each in said([BEFORE], hour) if each.startswith("From the first sixth")]
    assert f": {', '.join(wrong) or 'nothing'} beyond its limit" in line
    assert "at least 10 migrations and 5 rehearsals" in line

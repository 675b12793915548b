"""Schedules (``window.schedule`` and the others) as texts: an interval (``1 minute``, ``30 s``), a cron line, ``@continuous``."""

from __future__ import annotations

import re

CONTINUOUS = "@continuous"  # the next run begins when one has ended
LONGEST_SECONDS = 10 * 365 * 86_400  # so that no sum of times is too large for a date
_UNITS = {"s": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400}
_INTERVAL = re.compile(r"(\d+)\s*([a-z]+?)s?", re.IGNORECASE)
_PRESETS = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}


def interval_seconds(text: str) -> int | None:
    """The seconds of an interval; None: it is none. Raises ValueError for one without a length."""
    interval = _INTERVAL.fullmatch(text.strip())
    if not interval or interval[2].lower() not in _UNITS:
        return None
    seconds = int(interval[1]) * _UNITS[interval[2].lower()]
    if not 0 < seconds <= LONGEST_SECONDS:
        raise ValueError("an interval has a length, of ten years at most")
    return seconds


def cron_line(text: str) -> str:
    """The cron line of a text, presets written out. Raises ValueError."""
    line = _PRESETS.get(text.strip(), text.strip())
    if line.startswith("@") or len(line.split()) not in (5, 6):
        raise ValueError("this is neither an interval nor a cron line")
    from croniter import CroniterError, croniter  # Airflow's own parser of cron lines

    try:
        croniter(line)
    except (CroniterError, ValueError, KeyError) as error:
        raise ValueError(str(error)) from error
    return line


def check(text: str, key: str) -> None:
    """Raises ValueError, whose message says what a schedule must be."""
    if (key, text.strip()) in (("window.schedule", CONTINUOUS), ("audit.schedule", "")):
        return
    try:
        if interval_seconds(text) is None:
            cron_line(text)
    except ValueError as error:
        raise ValueError(f"{error}; {way_out(key)}") from error


def way_out(key: str) -> str:
    return "write an interval, as in `1 minute` or `30 s`, or a cron line, as in `*/5 * * * *`" + (
        f", or `{CONTINUOUS}`" if key == "window.schedule" else ""
    )

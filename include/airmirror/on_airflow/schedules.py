"""``window.schedule`` as an Airflow timetable: an interval (``1 minute``, ``30 s``), a cron line, or ``@continuous``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronDataIntervalTimetable, DeltaDataIntervalTimetable

from airmirror.errors import AirmirrorError

_UNITS = {"s": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400}
_INTERVAL = re.compile(r"(\d+)\s*([a-z]+?)s?", re.IGNORECASE)
_PRESETS = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}


@dataclass(eq=False)
class BadSchedule(AirmirrorError):
    """A schedule that is neither an interval nor a cron line."""

    flow: str
    key: str
    value: str
    reason: str

    def __str__(self) -> str:
        if self.key == "window.trigger.records":
            return f"flow {self.flow!r}: {self.key} = {self.value}: {self.reason}"
        return (
            f"flow {self.flow!r}: {self.key} = {self.value}: {self.reason}; write an interval, as in `1 minute` or `30 s`, "
            "or a cron line, as in `*/5 * * * *`" + (", or `@continuous`" if self.key == "window.schedule" else "")
        )


CONTINUOUS = "@continuous"  # the next run begins when one has ended


def schedule(
    flow: str, value: str, records: str | None = None
) -> str | CronDataIntervalTimetable | DeltaDataIntervalTimetable | AssetOrTimeSchedule:
    """What ``window.schedule`` and ``window.trigger.records`` say. Raises BadSchedule."""
    if value.strip() == CONTINUOUS:
        if records:
            raise BadSchedule(
                flow, "window.trigger.records", records, f"{CONTINUOUS} waits for nothing: one or the other"
            )
        return CONTINUOUS
    times = timetable(flow, value)
    if not records:
        return times
    from airmirror.on_airflow.growth_trigger import GrowthTrigger

    name = f"airmirror.growth.{flow.replace('->', '.')}"
    watcher = AssetWatcher(name=name, trigger=GrowthTrigger(flow, int(records)))
    return AssetOrTimeSchedule(timetable=times, assets=Asset(name, watchers=[watcher]))


def timetable(
    flow: str, value: str, key: str = "window.schedule"
) -> CronDataIntervalTimetable | DeltaDataIntervalTimetable:
    """Data intervals follow one another without a gap (a plain cron string gives intervals of no length). Raises BadSchedule."""
    text = value.strip()
    interval = _INTERVAL.fullmatch(text)
    if interval and interval[2].lower() in _UNITS:
        seconds = int(interval[1]) * _UNITS[interval[2].lower()]
        if seconds == 0:
            raise BadSchedule(flow, key, value, "an interval has a length")
        return DeltaDataIntervalTimetable(timedelta(seconds=seconds))
    line = _PRESETS.get(text, text)
    from croniter import CroniterError, croniter  # Airflow's own parser of cron lines

    if line.startswith("@") or len(line.split()) not in (5, 6):
        raise BadSchedule(flow, key, value, "this is neither an interval nor a cron line")
    try:
        croniter(line)
    except (CroniterError, ValueError, KeyError) as error:
        raise BadSchedule(flow, key, value, str(error)) from error
    return CronDataIntervalTimetable(line, timezone="UTC")

"""``window.schedule`` as an Airflow timetable: an interval (``1 minute``, ``30 s``), a cron line, or ``@continuous``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronDataIntervalTimetable, DeltaDataIntervalTimetable

from airmirror.config.schedules import CONTINUOUS, cron_line, interval_seconds, way_out
from airmirror.errors import AirmirrorError


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
        return f"flow {self.flow!r}: {self.key} = {self.value}: {self.reason}; {way_out(self.key)}"


def schedule(
    flow: str, value: str, records: int | None = None
) -> str | CronDataIntervalTimetable | DeltaDataIntervalTimetable | AssetOrTimeSchedule:
    """Return the schedule of ``window.schedule`` and ``window.trigger.records``. Raises BadSchedule."""
    if value.strip() == CONTINUOUS:
        if records:
            raise BadSchedule(
                flow, "window.trigger.records", str(records), f"{CONTINUOUS} waits for nothing: one or the other"
            )
        return CONTINUOUS
    times = timetable(flow, value)
    if not records:
        return times
    from airmirror.on_airflow.triggers.growth import GrowthTrigger

    name = f"airmirror.growth.{flow.replace('->', '.')}"
    watcher = AssetWatcher(name=name, trigger=GrowthTrigger(flow, records))
    return AssetOrTimeSchedule(timetable=times, assets=Asset(name, watchers=[watcher]))


def timetable(
    flow: str, value: str, key: str = "window.schedule"
) -> CronDataIntervalTimetable | DeltaDataIntervalTimetable:
    """Data intervals follow one another without a gap (a plain cron string gives intervals of no length). Raises BadSchedule."""
    try:
        seconds = interval_seconds(value)
        if seconds is not None:
            return DeltaDataIntervalTimetable(timedelta(seconds=seconds))
        return CronDataIntervalTimetable(cron_line(value), timezone="UTC")
    except ValueError as error:
        raise BadSchedule(flow, key, value, str(error)) from error

"""Schedules as Airflow timetables: an interval (``1 minute``, ``30 s``), a cron line, ``@continuous``; several of one DAG."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from airflow.sdk import (
    Asset,
    AssetOrTimeSchedule,
    AssetWatcher,
    CronDataIntervalTimetable,
    DeltaDataIntervalTimetable,
    MultipleCronTriggerTimetable,
)

from airmirror.config.schedules import CONTINUOUS, cron_line, interval_seconds, way_out
from airmirror.errors import AirmirrorError


class BadSchedule(AirmirrorError, bad_input=True):
    """A schedule that is neither an interval nor a cron line."""

    flow: str
    key: str
    value: str
    reason: str

    def __str__(self) -> str:
        if self.key == "window.trigger.records":
            return f"flow {self.flow!r}: {self.key} = {self.value}: {self.reason}"
        return f"flow {self.flow!r}: {self.key} = {self.value}: {self.reason}; {way_out(self.key)}"


class TwoSchedules(AirmirrorError):
    """Different schedules of one DAG, of which not all are cron lines: no timetable has them all."""

    flow: str
    one: str
    other: str
    says = "flow {0.flow!r}: {0.one} and {0.other} are of one DAG: write both as cron lines, or the same for both"


Timetable = CronDataIntervalTimetable | DeltaDataIntervalTimetable


def schedule(flow: str, value: str, records: int | None = None) -> str | Timetable | AssetOrTimeSchedule:
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


def timetable(flow: str, value: str, key: str = "window.schedule") -> Timetable:
    """Data intervals follow one another without a gap (a plain cron string gives intervals of no length). Raises BadSchedule."""
    try:
        seconds = interval_seconds(value)
        if seconds is not None:
            return DeltaDataIntervalTimetable(timedelta(seconds=seconds))
        return CronDataIntervalTimetable(cron_line(value), timezone="UTC")
    except ValueError as error:
        raise BadSchedule(flow, key, value, str(error)) from error


def union(flow: str, schedules: Mapping[str, str]) -> Timetable | MultipleCronTriggerTimetable | None:
    """Return when any of the schedules fires, by their keys; None: there are none. Raises BadSchedule, TwoSchedules."""
    found = [timetable(flow, value, key) for key, value in schedules.items()]
    if len(set(schedules.values())) < 2:
        return found[0] if found else None
    if not all(isinstance(each, CronDataIntervalTimetable) for each in found):
        one, other = (f"{key} = {value}" for key, value in schedules.items())
        raise TwoSchedules(flow, one, other)
    return MultipleCronTriggerTimetable(*map(cron_line, schedules.values()), timezone="UTC")


def fires(value: str, at: datetime) -> bool:
    from croniter import croniter

    return bool(croniter.match(cron_line(value), at))

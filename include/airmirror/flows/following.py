"""A flow's windows that follow the log: judged by its gate, its tasks done meanwhile as their intervals say."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.flows.gates import Expectations, gate_of
from airmirror.flows.measure import measure_meanwhile
from airmirror.flows.post_window import OFFSET_SYNCS, POST_WINDOW_TASKS, do_task, enabled_tasks, intervals, tasks_due
from airmirror.flows.prepare import Opened, prepare, selected
from airmirror.quality.suites import check_suites
from airmirror.slot.errors import SlotFenced
from airmirror.windows.ending import Topics
from airmirror.windows.fence import HeldLease
from airmirror.windows.following import Follow

log = logging.getLogger(__name__)


def following_of(
    opened: Opened, by: Expectations, *, window: str, tasks: Collection[str] = POST_WINDOW_TASKS
) -> Follow:
    """Return how a window of the flow follows, where ``window.follow.ms`` wants it to. ``tasks``: of those that are enabled."""
    names = tuple(name for name in reversed(enabled_tasks(opened.flow)) if name in tasks)  # groups wait for nothing
    seconds = [each for name, each in intervals(opened.flow).items() if name in names]
    return Follow(
        gate_of(opened, by, window=window),
        tasks=PostWindowTasks(opened, window, names).do,
        seconds=min(seconds, default=float("inf")),
        seen=partial(measure_meanwhile, opened, begun_ms=int(time.time() * 1000)),
        select=partial(selected, opened),
        ready=partial(check_suites, by.suites or ()),  # imports Great Expectations, for seconds
        topics=Topics(partial(sync_topics, opened), topics_interval(opened.flow)),
    )


def sync_topics(opened: Opened) -> Collection[str]:
    """Make remote topics ready as before a window, and name those of the source that the next window would copy. Raises what
    ``prepare`` raises."""
    prepared = prepare(opened)
    for change in prepared.report.changes:
        log.info("Meanwhile, %s.", change)
    for refused in prepared.refused:
        log.warning("Meanwhile, %s", refused)
    return prepared.topics


def topics_interval(flow: Flow) -> float:
    """The seconds between two looks at topics, configs and ACLs, the shortest of MirrorMaker 2's three intervals; infinite: none
    but where something is new."""
    settings = flow.settings
    found = (
        (settings.refresh_topics_enabled, settings.refresh_topics_interval_seconds),
        (settings.sync_topic_configs_enabled, settings.sync_topic_configs_interval_seconds),
        (settings.sync_topic_acls_enabled, settings.sync_topic_acls_interval_seconds),
    )
    return min((seconds for enabled, seconds in found if enabled and seconds > 0), default=math.inf)


@dataclass
class PostWindowTasks:
    """The post-window tasks of a window that follows, in the order of ``names``. One that fails is logged, stops no other, and
    waits as long as a judgement does."""

    opened: Opened
    window: str
    names: tuple[str, ...]
    _owed: bool = False  # offset syncs
    _not_before: dict[str, float] = field(default_factory=dict)
    _said: dict[str, str] = field(default_factory=dict)

    def do(self, held: HeldLease, verified: bool) -> None:
        """Do what is due: offset syncs when anything was verified, the others by their intervals, and at once after a judgement
        where they are as short as its own: what they have waited for is there. Raises SlotFenced."""
        flow = self.opened.flow
        self._owed = self._owed or verified
        due = tasks_due(self.opened) | ({OFFSET_SYNCS} if self._owed else set())
        if verified:
            due |= {name for name, each in intervals(flow).items() if each * 1000 <= flow.window.verify_interval_ms}
        for name in self.names:
            if name in due and time.monotonic() >= self._not_before.get(name, 0.0):
                self._try(name, held)

    def _try(self, name: str, held: HeldLease) -> None:
        try:
            said = do_task(self.opened, name, self.window, under=held)
        except SlotFenced:
            raise
        except AirmirrorError as error:  # nothing is lost: the next one does what this one has left
            self._not_before[name] = time.monotonic() + self.opened.flow.window.verify_interval_ms / 1000
            log.warning("Meanwhile, %s failed: %s", name, error)
            return
        self._owed = self._owed and name != OFFSET_SYNCS
        if self._said.get(name) != said:
            log.info("Meanwhile, %s: %s.", name, said)
        self._said[name] = said

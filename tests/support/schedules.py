"""A schedule for flows that tests switch on and that must not run by themselves after that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def daily() -> str:
    """A cron line: the run of the last half day begins when the DAG is switched on, the next one half a day from now.

    A plain ``1 day`` begins one at midnight too, among whatever a test does then.
    """
    far = datetime.now(UTC) + timedelta(hours=12)
    return f"{far.minute} {far.hour} * * *"

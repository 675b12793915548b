"""The webhooks' bodies: Alertmanager's (version 4) and Grafana's, and what a run is made of from an alert.

https://prometheus.io/docs/alerting/latest/configuration/#webhook_config,
https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from airmirror.report.markdown import escape

MOST_ALERTS = 100  # of one call: each may start a run
_PLAIN_URL = re.compile(r"https?://[\w.:/?&=%+#~,;@-]+")  # has nothing that Markdown obeys
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Alert(BaseModel):
    """One alert. Its labels name the flow: ``flow``, or ``source`` and ``target``; ``topic`` and ``partition`` narrow down."""

    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    annotations: dict[str, str] = Field(default_factory=dict)
    starts_at: datetime = Field(alias="startsAt")
    generator_url: str = Field("", alias="generatorURL")
    fingerprint: str = ""

    @property
    def flow(self) -> str:
        return self.labels.get("flow") or "->".join(self.labels.get(name, "") for name in ("source", "target"))

    @property
    def run_id(self) -> str:
        """The same for every time that the alert is sent, and another one when it fires again. Raises ValueError."""
        name = self.fingerprint if _PLAIN.fullmatch(self.fingerprint) else _digest(self.labels)
        began = self.starts_at if self.starts_at.tzinfo else self.starts_at.replace(tzinfo=UTC)
        try:
            return f"alert__{name}__{began.astimezone(UTC).isoformat()}"
        except OverflowError as error:  # the year 1, east of Greenwich
            raise ValueError(f"startsAt={began.isoformat()} is no time") from error

    def choice(self) -> dict[str, Any]:
        """Return the run's configuration, narrowed as asked. Raises ValueError for a partition that is no number."""
        chosen: dict[str, Any] = {}
        if topic := self.labels.get("topic"):
            chosen["topics"] = [topic]
        if partition := self.labels.get("partition"):
            if not partition.isdecimal():
                raise ValueError(f"label partition={partition!r} is no partition number")
            chosen["partitions"] = [int(partition)]
        return chosen

    def note(self, receiver: str) -> str:
        """Return the note that names the alert, for those who find the run, as Markdown. Labels have names of Kafka in them."""
        labels = ", ".join(escape(f"{name}={value}") for name, value in sorted(self.labels.items()))
        summary = self.annotations.get("summary") or self.annotations.get("description") or ""
        url = self.generator_url if _PLAIN_URL.fullmatch(self.generator_url) else escape(self.generator_url)
        lines = (f"Started by an alert of {receiver}: {labels}", escape(summary, 1000), url)
        return "\n".join(line for line in lines if line)[:1000]


class Webhook(BaseModel):
    """The needed part of a webhook's body; whatever else it has is left alone."""

    alerts: list[Alert] = Field(max_length=MOST_ALERTS)


def _digest(labels: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(labels, sort_keys=True).encode()).hexdigest()[:16]

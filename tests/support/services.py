"""Managed services: the versions that each forces, what was not tried on it, and what it can't be used for, with the reason."""

from __future__ import annotations

from dataclasses import dataclass

NOT_TRIED, CAN_NOT = "not tried", "can't"
_ITSELF = (("on the service itself", NOT_TRIED),)


@dataclass(frozen=True)
class Service:
    """A service; ``forced``: the Airflows, each with its Python, whose own constraints it forces on what is installed there."""

    name: str
    known: tuple[tuple[str, str], ...]
    forced: tuple[tuple[str, str], ...] = ()


SERVICES = (
    Service("Amazon MWAA", _ITSELF, forced=(("3.2.1", "3.12"), ("3.3.1", "3.12"))),
    Service("Google Cloud Composer", _ITSELF),
    Service("Astro", _ITSELF),
    Service(
        "Amazon MSK",
        (
            ("by SCRAM-SHA-512 or certificates", NOT_TRIED),
            ("by `AWS_MSK_IAM`: [refused](security.md#rejected-settings)", CAN_NOT),
        ),
    ),
    Service("Amazon MSK Serverless", (("it has `AWS_MSK_IAM` alone", CAN_NOT),)),
    Service(
        "Azure Event Hubs",
        (
            ("Standard, as a target: it has no transactions", CAN_NOT),
            ("Standard as a source; Premium and Dedicated", NOT_TRIED),
        ),
    ),
    Service(
        "Confluent Cloud, and others that speak Kafka's protocol", (("by PLAIN, SCRAM or OAUTHBEARER", NOT_TRIED),)
    ),
    Service(
        "Databricks",
        (
            (
                "serverless: functions [reach no network](https://docs.databricks.com/en/compute/serverless/limitations) "
                "there, and a slot is one",
                CAN_NOT,
            ),
            ("other compute", NOT_TRIED),
        ),
    ),
    Service("Amazon EMR Serverless", (("each session has an address and a token of its own", NOT_TRIED),)),
    Service("Amazon EMR, Google Dataproc", (("Spark Connect on a cluster whose Python is Airflow's", NOT_TRIED),)),
)

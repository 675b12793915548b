"""The effect of each of Kafka's client settings: rows for ``airmirror config --explain``."""

from __future__ import annotations

from airmirror.clusters.admin.librdkafka import is_read
from airmirror.clusters.security.settings import JAVA_CLASS, is_class
from airmirror.config.explain import KeyRow
from airmirror.config.keys import CLIENT, COPIES, NOT_OF_RECORDS, ROLES, SET_HERE


def explain_clients() -> list[KeyRow]:
    """Every setting of Kafka's clients, by name; ``scope`` says of which kinds of client."""
    return [
        KeyRow(
            name=name, type="", default="", scope=_clients(name), here=_here(name), doc="A setting of Kafka's clients."
        )
        for name in sorted(CLIENT)
    ]


def _clients(name: str) -> str:
    return ", ".join(role for role, names in ROLES.items() if name in names)


def _here(name: str) -> str:
    if is_class(name):
        return f"Kafka's own classes are accepted, others refused: {JAVA_CLASS}"
    if name in SET_HERE:
        return "accepted, without effect: everything is written with acks=all, records in transactions"
    if name in NOT_OF_RECORDS and is_read(name):
        return "used for offset syncs, checkpoints and heartbeats: records are copied in the batches that they are in"
    if name.startswith("compression."):
        return "used for records without compression, which are compressed by it, for offset syncs, checkpoints and heartbeats"
    if not is_read(name):
        return "accepted, without effect: only Kafka's Java clients have it"
    return "used" if name in COPIES else "used, but for the copy of records itself, which has a client of its own"

"""The console's page of decisions: what waits for a person, what each answer does and costs, and the very command."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from airmirror.flows.decisions import HeldRange, held_ranges
from airmirror.ledger import Failure, Ledger
from airmirror.on_airflow.dags.common import id_of
from airmirror.on_airflow.question import ACCEPT_LOSS, AGAIN, MOST_ASKED, NEW_TOPIC, OPTIONS, VERIFY_AGAIN
from airmirror.on_airflow.tasks.approvals import asked_in
from airmirror.rows import rows_of
from airmirror.web.console.known import known, shown_decided
from airmirror.web.console.overview import Shown
from airmirror.windows.mirror import returns_of
from airmirror.wire.mappings import GATE, Hold

# The commands of answers that have one: without --yes they tell what would be done, and write nothing.
RESETS = {
    ACCEPT_LOSS: ("--accept-loss",),
    AGAIN: ("--start-again",),
    NEW_TOPIC: ("--start-again", "--new-remote-topic"),
}


def waiting(ledger: Ledger, shown: Collection[Shown]) -> dict[str, Any]:
    """What waits for a person, and what is decided and waits for the next run, flow by flow; ``of`` as many flows."""
    flows, decided = [], []
    for each in shown:
        of_flow = ledger.flow(each.flow.name)
        now = known(of_flow, each.red_run)
        held = held_ranges(of_flow) if now.is_held else []
        by_people = [hold for _, hold in sorted(now.holds.items()) if hold.by != GATE]
        failing = [failure for failure in now.failing if failure.needs_somebody]
        if held or by_people or failing:
            returns = returns_of(each.flow, of_flow)
            questions = asked_in(ledger, each.flow.name, id_of("decide", each.flow))
            asked = {run: _asked(about, held, each.flow.name, returns) for run, about in questions.items() if about}
            about = {tuple(incident) for one in asked.values() for incident in one["about"]}
            held.sort(key=lambda item: item.incident not in about)  # the page has place for the first
            flows.append(_of_flow(each, held, by_people, failing, returns) | {"asked": asked})
        if now.decided:
            decided.append({"flow": each.flow.name, "dag_id": each.dag_id, "decided": shown_decided(now.decided)})
    return {"flows": flows, "decided": decided, "of": len(shown)}


def _of_flow(
    shown: Shown, held: list[HeldRange], by_people: list[Hold], failing: list[Failure], returns: Collection[str]
) -> dict[str, Any]:
    flow, decide = shown.flow, id_of("decide", shown.flow)
    return {
        "flow": flow.name,
        "dag_id": shown.dag_id,
        "decide": decide,
        "required_actions": f"dags/{quote(decide)}/required_actions",
        "ask": shlex.join(["airflow", "dags", "trigger", decide]) if held else None,
        "held": [asdict(item) for item in held[:MOST_ASKED]],
        "held_in_all": len(held),
        "options": [
            {
                "name": option.name,
                "does": option.does.format(source=flow.source.alias, target=flow.target.alias),
                "costs": option.costs.format(source=flow.source.alias, target=flow.target.alias),
                "is_final": option.is_final,
                "commands": list(_commands(option.name, flow.name, held[:MOST_ASKED], returns)),
            }
            for option in OPTIONS
        ]
        if held
        else [],
        "held_by_people": rows_of(
            by_people[:MOST_ASKED],
            "topic partition by reason time_ms command",
            command=lambda hold: _airmirror(
                "hold", "release", hold.topic, "--partition", hold.partition, flow=flow.name, reason=True
            ),
        ),
        "failing": rows_of(failing[:MOST_ASKED], "topic partition since_ms windows error transient"),
    }


def _asked(about: list[list[Any]], held: list[HeldRange], flow: str, returns: Collection[str]) -> dict[str, Any]:
    """What a question is about, whether any of it is still held at these offsets, and the commands for that, by answer."""
    about = about[:MOST_ASKED]
    incidents = {tuple(incident) for incident in about}
    still = [item for item in held if item.incident in incidents]
    commands = {option.name: list(_commands(option.name, flow, still, returns)) for option in OPTIONS}
    return {"about": about, "is_held": bool(still), "commands": commands}


def _commands(answer: str, flow: str, held: list[HeldRange], returns: Collection[str]) -> Iterator[str]:
    """Yield the commands that do the same as an answer, a topic each; without --yes, so that they show what they would do.

    What ``returns`` never begins again: its remote topic is the original one.
    """
    for topic in dict.fromkeys(item.topic for item in held):
        if topic in returns and answer in (AGAIN, NEW_TOPIC):
            continue
        numbers = [word for item in held if item.topic == topic for word in ("--partition", item.partition)]
        if answer == VERIFY_AGAIN:
            yield _airmirror("hold", "release", topic, *numbers, flow=flow, reason=True)
        elif answer in RESETS:
            of = [] if answer == NEW_TOPIC else numbers
            yield _airmirror("reset", "--topic", topic, *of, *RESETS[answer], flow=flow)


def _airmirror(*words: object, flow: str, reason: bool = False) -> str:
    said = shlex.join(["airmirror", *map(str, words), "--flow", flow])
    return f"{said} --reason '…'" if reason else said

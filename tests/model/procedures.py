"""Procedures that meet, explored: every state that may follow a state, and what must be so in each.

Windows, orders and people take their next step at any time; whoever is killed is one who takes none any more, and runs again as
another process. Applications write and read where people have started them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from model import steps
from model.estate import (
    BACK,
    EAST,
    FLOWS,
    NOWHERE,
    SIDES,
    THERE,
    TOPICS,
    WEST,
    Account,
    Process,
    World,
    put,
    unread_before,
)
from model.order_rules import OrderRules
from model.programs import programs
from model.steps import ALL

OF_THE_FLOW = frozenset({"window", "gate", "groups", "deployment", "ACLs"})  # first words of what is no order
DONE = "; done: "  # before an order that has taken its last step


@dataclass(frozen=True)
class Meeting:
    """What is explored: processes that meet, in a world that has come so far."""

    name: str
    first: World


def follow(rules: OrderRules, world: World) -> Iterator[tuple[str, World]]:
    """Every step that can be taken, with its name."""
    yield from _applications(world)
    for number, me in enumerate(world.processes):
        program = programs(rules)[me.kind]
        if me.at >= len(program) or _is_like_an_earlier_one(world, number):
            continue
        taken = program[me.at](world, me, rules)
        if taken is None:
            continue
        words, after, mine = taken
        program = programs(rules)[mine.kind]
        while mine.at < len(program) and hasattr(program[mine.at], "at_once"):  # it is said, and people do it
            more, after, mine = program[mine.at](after, mine, rules) or ("", after, mine)
            words += f"; {more}"
        if mine.at >= len(program) and mine.at != steps.DONE and is_order(mine):
            words += f"{DONE}{order(mine)}"
        if mine.at >= len(program):
            mine = steps.over(mine)
        if is_order(me) and (found := _changed(world, after, me)):
            after = after.wrongly(found)
        yield f"{me.kind}: {words}", after._replace(processes=put(after.processes, number, mine))


def is_order(process: Process) -> bool:
    """Whether a process is an order: it names topics, and changes no others."""
    return process.kind.split(" ")[0] not in OF_THE_FLOW


def order(process: Process) -> str:
    """An order in words, with the topics that it names."""
    return process.kind + (f" for {' and '.join(TOPICS[each] for each in process.topics)}" if process.topics else "")


def _is_like_an_earlier_one(world: World, number: int) -> bool:
    """Whether one that is alike stands where this one does: that it goes first makes no difference."""
    return world.processes[number] in world.processes[:number]


def _applications(world: World) -> Iterator[tuple[str, World]]:
    for topic in ALL:
        name, side = TOPICS[topic], world.producers[topic]
        if side != NOWHERE and world.left_of("write"):
            yield f"{name} is written on {SIDES[side]}", _written(world, topic, side).spend("write")
        for other in (0, 1):
            if other != side and world.left_of(f"stray on {SIDES[other]}") and topic == 0:
                there = _written(world, topic, other).spend(f"stray on {SIDES[other]}")
                yield f"somebody writes {name} on {SIDES[other]}", there
        reader = world.readers[topic]
        if reader.home != NOWHERE and reader.at[reader.home] < len(world.logs[topic][reader.home]):
            yield f"the group of {name} reads on {SIDES[reader.home]}", _read(world, topic)
        if reader.home == EAST and reader.at[EAST] and world.left_of("rewind"):
            again = world.with_reader(topic, at=put(reader.at, EAST, 0), read=0).spend("rewind")
            seen = (
                0,
                world.clock + 1,
            )  # the deployment at work notes it: what nobody has seen nobody knows after a disaster
            again = again._replace(last_seen=(seen, world.last_seen[1], seen), clock=world.clock + 1)
            yield f"people let the group of {name} read again from 0 on, and deployment 0 notes it", again
        if reader.home == WEST and world.left_of("set back on west"):
            again = world.with_reader(topic, at=put(reader.at, WEST, 0), read=0, home=NOWHERE)
            yield f"people set the group of {name} back to 0 on west", again.spend("set back on west")
        if reader.home == NOWHERE and reader.at[WEST] >= 0 and world.left_of("start on west"):
            yield (
                f"people start the group of {name} on west",
                world.with_reader(topic, home=WEST).spend("start on west"),
            )
        if topic < len(world.mirrormaker) and world.mirrormaker[topic] < len(world.logs[topic][EAST]):
            at = world.mirrormaker[topic]
            log = (*world.logs[topic][1], world.logs[topic][EAST][at])
            copied = world.with_log(topic, 1, log)._replace(mirrormaker=put(world.mirrormaker, topic, at + 1))
            yield f"MirrorMaker 2 copies {name} {at}", copied


def _written(world: World, topic: int, side: int) -> World:
    new = max((each for log in world.logs[topic] for each in log), default=-1) + 1
    return world.with_log(topic, side, (*world.logs[topic][side], new))


def _read(world: World, topic: int) -> World:
    reader = world.readers[topic]
    record, place = world.logs[topic][reader.home][reader.at[reader.home]], f"{TOPICS[topic]} on {SIDES[reader.home]}"
    if unread_before(world, topic, reader.home):
        world = world.wrongly(f"the group of {place} reads past a record that it has not read")
    again = reader.again
    if reader.read >> record & 1:
        again -= 1
        if again < 0:
            world = world.wrongly(f"the group of {place} reads a record again, and nobody has said so")
    at = put(reader.at, reader.home, reader.at[reader.home] + 1)
    return world.with_reader(topic, at=at, read=reader.read | 1 << record, again=max(0, again))


def _changed(before: World, after: World, me: Process) -> str:
    """What an order changed that it does not name."""
    mine = steps.named(before, me)
    for topic in ALL:
        if topic in mine:
            continue
        was = (before.owner(topic), before.logs[topic], before.readers[topic])
        if (after.owner(topic), after.logs[topic], after.readers[topic]) != was:
            return f"{me.kind} changes {TOPICS[topic]}, which it does not name"
        for flow in (THERE, BACK):
            were = before.account(flow, topic), before.moves[flow][topic]
            now = after.account(flow, topic), after.moves[flow][topic]
            if now != were and not _is_judgement(were[0], now[0]):
                return f"{me.kind} changes {FLOWS[flow]} of {TOPICS[topic]}, which it does not name"
    return ""


def _is_judgement(before: Account | None, after: Account | None) -> bool:
    """Whether only a gate has judged it, as any window may."""
    return before is not None and after == before._replace(judged=after.judged, verified=after.verified)  # type: ignore[union-attr]


def broken(rules: OrderRules, world: World) -> str:
    """What is wrong with a state; empty: nothing."""
    if world.wrong:
        return world.wrong
    if world.lists[2]:
        return "the target denies what only a block denied"
    for topic in ALL:
        for side, log in zip(SIDES, world.logs[topic], strict=True):
            if len(set(log)) != len(log):
                return f"D: {TOPICS[topic]} on {side} holds {list(log)}: a record is there twice"
        for flow in (THERE, BACK):
            if reason := _account(world, flow, topic):
                return f"{FLOWS[flow]} of {TOPICS[topic]}: {reason}"
        if _may_write(world, rules, THERE, topic) and _may_write(world, rules, BACK, topic):
            return f"windows of both directions may write {TOPICS[topic]}"
    return ""


def _account(world: World, flow: int, topic: int) -> str:
    account, source, target = world.account(flow, topic), world.logs[topic][flow], world.logs[topic][1 - flow]
    if account is None:
        return ""
    for here, there in account.pairs:
        if there >= len(target) or here >= len(source) or source[here] != target[there]:
            return f"G: its account says that offset {here} lies at {there}, and it does not"
    ends = [pair[0] for pair in account.pairs]
    if ends != sorted(set(ends)) or [pair[1] for pair in account.pairs] != sorted({pair[1] for pair in account.pairs}):
        return f"D: its account is not in order: {account.pairs}"
    if lost := [
        each
        for each in range(account.begin[0], account.position)
        if each not in ends and not _left(world, topic, source[each])
    ]:
        return f"C: offset {lost[0]} is in its account, and not on the target"
    if account.verified > account.judged:
        return f"F: verified up to {account.verified}, and gates have read up to {account.judged}"
    if account.judged > account.position:
        return f"F: judged up to {account.judged}, and its account reaches {account.position}"
    return ""


def _left(world: World, topic: int, record: int) -> bool:
    return bool(world.left[topic] >> record & 1)


def _may_write(world: World, rules: OrderRules, flow: int, topic: int) -> bool:
    """Whether a window of the flow is about to commit something of a topic, and is not fenced."""
    program = programs(rules)[f"window {flow}"]
    place = next(number for number, step in enumerate(program) if step.__qualname__.startswith("copy."))
    account = world.account(flow, topic)
    behind = account is not None and account.position < len(world.logs[topic][flow])
    return behind and any(
        each.kind == f"window {flow}" and each.at == place and each.ids[flow] and topic in each.seen
        for each in world.processes
    )

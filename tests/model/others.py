"""The steps of resets, of a hand-back and a take-over, of a fence, and of deployments that note where groups are."""

from __future__ import annotations

from airmirror.wire.owners import BACK as NOT_BACK_YET
from airmirror.wire.owners import Owner
from model.estate import BACK, EAST, SIDES, THERE, TOPICS, Account, Process, World, bits, put
from model.order_rules import OrderRules
from model.steps import ALL, Outcome, Step, on, over, refused


def may_reset(flow: int) -> Step:
    """A topic to begin again is open, and does not return."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        frozen = [each for each in me.topics if flow == THERE and world.owner(each) is not Owner.SOURCE]
        if flow == BACK and rules.reset_leaves_returns:
            frozen = [each for each in me.topics if world.owner(each) in NOT_BACK_YET]
        if frozen:
            return refused(world, me, "it is frozen, or returns", frozen)
        return "looks whether it may begin again", world, on(me)

    return step


def recreate(flow: int) -> Step:
    """Delete the remote topic, and make it again."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        for topic in me.topics:
            kept = bits(world.logs[topic][flow])
            for each in world.logs[topic][1 - flow]:
                if not kept >> each & 1:
                    world = world.wrongly(f"{me.kind} deletes record {each} of {TOPICS[topic]}, which is nowhere else")
            resets = (world.account(flow, topic) or Account()).resets + 1
            world = world.with_log(topic, 1 - flow, ()).with_account(flow, topic, None)
        empty = tuple((each, Account(resets=resets)) for each in me.topics)
        return f"creates the topic on {SIDES[1 - flow]} again", world, on(me, seen=empty)

    return step


def pause(world: World, me: Process, rules: OrderRules) -> Outcome:
    """People pause the flow's windows; one that has begun may sleep on."""
    return "its people pause the flow", world._replace(paused=True), on(me)


def copied_positions(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Where MirrorMaker 2 is to resume: after what is verified; refused where anything is not, or returns."""
    if left := [each for each in ALL if (its := world.account(THERE, each) or Account()).verified < its.position]:
        return refused(world, me, "not all is verified", left)
    if rules.handback_refuses_returns and (back := [each for each in ALL if world.owner(each) in NOT_BACK_YET]):
        return refused(world, me, "it returns", back)
    positions = tuple((world.account(THERE, each) or Account()).position for each in ALL)
    return "reads where MirrorMaker 2 resumes", world, on(me, seen=positions)


def hand_over(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Write it, and say so; people start MirrorMaker 2."""
    return "hands back; MirrorMaker 2 is started", world._replace(mirrormaker=me.seen), on(me, seen=())


def stop_mirrormaker(world: World, me: Process, rules: OrderRules) -> Outcome | None:
    """People stop MirrorMaker 2."""
    return ("its people stop MirrorMaker 2", world._replace(mirrormaker=()), on(me)) if world.mirrormaker else None


def follow_copies(world: World, me: Process, rules: OrderRules) -> Outcome:
    """What MirrorMaker 2 has copied since is the source's, record by record, after what the flow has an account of."""
    found = []
    for topic in ALL:
        account = world.account(THERE, topic)
        east, west = world.logs[topic]
        if account is None or world.owner(topic) is not Owner.SOURCE:
            continue
        theirs = west[account.end :]
        if theirs != east[account.position : account.position + len(theirs)]:
            return refused(world, me, "its copies are not the source's", [topic])
        if theirs:
            pairs = tuple((account.position + each, account.end + each) for each in range(len(theirs)))
            ends = account.position + len(theirs), len(west)
            grown = account._replace(position=ends[0], end=ends[1], pairs=(*account.pairs, *pairs))
            found.append((topic, grown))
    return "follows what MirrorMaker 2 has copied", world, on(me, seen=tuple(found))


def go_on(world: World, me: Process, rules: OrderRules) -> Outcome:
    """People start the flow's windows again."""
    return "its people start the flow", world._replace(paused=False), on(me)


def access(place: int, value: bool, words: str) -> Step:
    """Change a fence's record (0), or the ACL that denies on the source (1)."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        return words, world._replace(lists=put(world.lists, place, value)), on(me)

    return step


def read(place: int, words: str) -> Step:
    """A window that synchronises topics reads whether a fence is known (0), or what the source denies (1)."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        return words, world, on(me, seen=(*me.seen, (place, world.lists[place])))

    return step


def copy_acls(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Copy what is denied and is no fence: by each time that the ledger was read, and each time that the ACLs were."""
    fence = any(value for place, value in me.seen if place == 0)
    denied = all(value for place, value in me.seen if place == 1)
    if denied and not fence:
        return "copies that the source denies", world._replace(lists=put(world.lists, 2, True)), over(me)
    return "copies no ACL", world, over(me)


def sees(ledger: int) -> Step:
    """A deployment notes where the group is on the source, in its own ledger and as a checkpoint."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        now = world.readers[0].at[EAST], world.clock + 1
        seen = put(put(world.last_seen, ledger, now), 2, now)
        return f"notes the group at {now[0]}", world._replace(last_seen=seen, clock=world.clock + 1), over(me)

    return step

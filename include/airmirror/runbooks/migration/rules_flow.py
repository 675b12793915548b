"""Rules about the flow: it is there, it is verified, it keeps up, and the target holds what it wrote and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from airmirror.clusters.protocol.producers import producers_by_id
from airmirror.errors import command, counted, named
from airmirror.report.document import Finding
from airmirror.runbooks.migration.facts import MigrationFacts, known
from airmirror.runbooks.migration.inventory import GROUPS, PRODUCERS, TRANSACTIONS
from airmirror.runbooks.migration.moving import OWN_IDS, readers, writers
from airmirror.runbooks.shown import judged


def rules(facts: MigrationFacts) -> Iterator[Finding]:
    """Yield every rule, in the order in which a person would ask."""
    yield _flow(facts)
    yield known(facts, _in_use(facts), GROUPS, PRODUCERS, TRANSACTIONS)
    yield _names(facts)
    yield _verified(facts)
    yield _lag(facts)
    yield _errors(facts)
    yield known(facts, _foreign(facts), PRODUCERS)
    yield known(facts, _open(facts), PRODUCERS)
    yield _reverse_flow(facts)
    yield _seen(facts)


def _flow(facts: MigrationFacts) -> Finding:
    what, flow = "a flow replicates them", facts.flow.name
    copied = [item for item in facts.planned if item.last is not None]
    if copied:
        topics = {item.topic for item in copied}
        return Finding("ok", what, f"{flow}: {counted(len(copied), 'partition')} of {counted(len(topics), 'topic')}")
    return Finding("stop", what, f"{flow} has replicated nothing yet", command("run-window", flow=flow))


def _in_use(facts: MigrationFacts) -> Finding:
    """Topics that are read or written and that the flow does not replicate are forgotten easily."""
    used = {topic for topics in (*readers(facts.source).values(), *writers(facts.source).values()) for topic in topics}
    used |= {each.partition.topic for each in facts.source.producers}
    refused = {each.topic for each in facts.topics.refused}
    found = sorted(used - facts.remote.keys() - refused - facts.returning)
    said = f"{counted(len(found), 'topic')} with readers or producers on {facts.source.alias} not replicated"
    way_out = f"add what moves to {facts.flow.name}.topics; what came from elsewhere need not move"
    return judged("warn", "everything in use is replicated", found, "it is", said, way_out)


def _names(facts: MigrationFacts) -> Finding:
    found = [f"{each.topic} as {each.remote}: {each.reason}" for each in facts.topics.refused]
    way_out = "rename or leave out what is named, or choose another replication.policy.class"
    fine = "no name is over 249 characters, and none is another topic's"
    return judged("stop", "every topic can have its name on the target", found, fine, "not replicated at all", way_out)


def _verified(facts: MigrationFacts) -> Finding:
    what, flow = "all that was copied is verified", facts.flow.name
    if facts.held:
        return Finding("stop", what, f"held: {named(facts.held)}", command("hold", "list", flow=flow))
    if facts.unverified:
        said = f"{counted(facts.unverified, 'committed transaction')} not judged by the gate yet"
        return Finding("warn", what, said, command("verify", flow=flow))
    return Finding("ok", what, "it is, and nothing is held")


def _lag(facts: MigrationFacts) -> Finding:
    """The time to drain comes from rates that were measured; it says so where they do not tell."""
    what = "the lag is gone in time"
    lag = sum(max(0, item.high_watermark - item.start) for item in facts.planned)
    written = sum(each.rate for name, each in facts.source.topics.items() if name in facts.remote)
    rates = f"{written:,.0f} offsets a second are written"
    if lag == 0:
        return Finding("ok", what, f"there is none; {rates}")
    if not facts.copies:
        return Finding("warn", what, f"{lag:,} offsets, {rates}, and no window has copied yet", _window(facts))
    rates += f", the fastest of the last windows copied {facts.copies:,.0f} a second"
    if facts.copies <= written:
        return Finding("warn", what, f"{lag:,} offsets; {rates}: that it catches up is not shown", _window(facts))
    seconds = lag / (facts.copies - written)
    said = f"{lag:,} offsets are gone in {seconds:,.0f} s: {rates}"
    return Finding("warn", what, said, _window(facts)) if seconds > 60 else Finding("ok", what, said)


def _errors(facts: MigrationFacts) -> Finding:
    found = [f"{item.key}: {item.error}" for item in facts.planned if item.error is not None]
    said = f"{counted(len(found), 'partition')} in error"
    return judged("stop", "no partition is left out", found, "none is", said, command("plan", flow=facts.flow.name))


def _foreign(facts: MigrationFacts) -> Finding:
    """Find who writes the remote topics besides the flow: their records, and the producers that the leaders remember."""
    names = producers_by_id(facts.target.transactions)
    remote = set(facts.remote.values())
    own = f"{OWN_IDS}{facts.flow.source.alias}."
    found = set(facts.foreign)
    found |= {
        f"{each.partition} by producer {each.producer_id} ({names.get(each.producer_id, 'without a transactional id')})"
        for each in facts.target.producers
        if each.partition.topic in remote and not names.get(each.producer_id, "").startswith(own)
    }
    way_out = "stop who writes there; a window refuses to continue after records that it does not know"
    fine = "no other writer of the remote topics is known"
    return judged("stop", "only the flow writes on the target", sorted(found), fine, "others write there", way_out)


def _open(facts: MigrationFacts) -> Finding:
    names = producers_by_id(facts.source.transactions)
    found = sorted(
        f"{each.partition} from {each.open_from} by {names.get(each.producer_id, f'producer {each.producer_id}')}"
        for each in facts.source.producers
        if each.open_from >= 0 and each.partition.topic in facts.remote
    )
    way_out = (
        "a cut-over of producers waits for their ends; `kafka-transactions.sh find-hanging` names those without one"
    )
    return judged("warn", "no transaction is open on the source", found, "none is", "open now", way_out)


def _reverse_flow(facts: MigrationFacts) -> Finding:
    what = "there is a reverse flow"
    source, target = facts.flow.source.alias, facts.flow.target.alias
    if facts.has_reverse:
        return Finding("ok", what, f"{target}->{source} is enabled")
    said = f"without a flow {target}->{source} nothing that is written on {target} reaches {source} again"
    return Finding("warn", what, said, f"add `{target}->{source}.enabled = true` before producers are cut over")


def _seen(facts: MigrationFacts) -> Finding:
    found = [
        f"{each.alias}: {what} ({why})" for each in (facts.source, facts.target) for what, why in each.unknown.items()
    ]
    way_out = "grant this user what is named, for the plan; what it can't see it can't warn of"
    return judged("warn", "this user sees all that the plan asks", found, "it does", "not known", way_out)


def _window(facts: MigrationFacts) -> str:
    return command("run-window", flow=facts.flow.name)

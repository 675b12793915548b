"""Rules about topics: what their configs do to records on the target, and partitions that differ."""

from __future__ import annotations

from collections.abc import Iterator

from airmirror.errors import command, counted
from airmirror.report.document import Finding
from airmirror.runbooks.migration.facts import MigrationFacts, known
from airmirror.runbooks.migration.inventory import CONFIGS_KNOWN, TopicFacts
from airmirror.runbooks.shown import judged
from airmirror.topics.drift import drifts

HOUR_MS = 3_600_000


def rules(facts: MigrationFacts) -> Iterator[Finding]:
    yield from (known(facts, rule(facts), CONFIGS_KNOWN) for rule in (_compacted, _append_time, _retention))
    yield _partitions(facts)
    yield _configs(facts)


def _pairs(facts: MigrationFacts) -> Iterator[tuple[TopicFacts, TopicFacts | None]]:
    """Yield each topic that moves, and its remote topic where that is there."""
    for topic, remote in facts.remote.items():
        if topic in facts.source.topics:
            yield facts.source.topics[topic], facts.target.topics.get(remote)


def _compacted(facts: MigrationFacts) -> Finding:
    """A cleaner works on each cluster by itself: the target may keep less of old values than the source does now."""
    found, soon = [], []
    for here, there in _pairs(facts):
        if "compact" not in here.configs.get("cleanup.policy", ""):
            continue
        found.append(here.name)
        for key in ("min.compaction.lag.ms", "delete.retention.ms"):
            if there and key in there.configs and _number(there, key) < _number(here, key):
                soon.append(f"{here.name} ({key} {here.configs[key]}, there {there.configs[key]})")
    what = "compacted topics keep what their readers need"
    if soon:
        way_out = f"give the remote topics the source's values; {command('topics', flow=facts.flow.name)} shows them"
        return judged("stop", what, soon, "", "the target cleans sooner", way_out)
    said = f"{counted(len(found), 'compacted topic')}: the target's cleaner works by itself, older values may be gone there"
    way_out = "readers that need every value, not the newest of each key, must have read them on the source"
    return judged("warn", what, found, "no topic is compacted", said, way_out)


def _append_time(facts: MigrationFacts) -> Finding:
    found = [
        f"{topic.name} on {where}"
        for here, there in _pairs(facts)
        for topic, where in ((here, facts.source.alias), (there, facts.target.alias))
        if topic and topic.configs.get("message.timestamp.type") == "LogAppendTime"
    ]
    way_out = (
        "see topics.log.append.time: copies keep the source's times, and records of moved producers have another kind"
    )
    fine = "every topic has its producers' times"
    return judged("warn", "timestamps stay what they are", found, fine, "LogAppendTime", way_out)


def _retention(facts: MigrationFacts) -> Finding:
    """Until the migration is over, and while it may be undone, neither side may drop what was not read."""
    found = []
    for here, there in _pairs(facts):
        for topic, where in ((here, facts.source.alias), (there, facts.target.alias)):
            if topic is None or "delete" not in topic.configs.get("cleanup.policy", "delete"):
                continue
            kept = _number(topic, "retention.ms")
            if 0 <= kept < facts.takes_ms:
                found.append(f"{topic.name} on {where}: {kept / HOUR_MS:,.0f} h")
    hours = facts.takes_ms / HOUR_MS
    way_out = "raise retention.ms for the time of the migration, or say how long it takes by --takes"
    said = f"kept for less than the {hours:,.0f} h of the migration"
    return judged("warn", "records outlive the migration", found, f"all are kept for {hours:,.0f} h", said, way_out)


def _partitions(facts: MigrationFacts) -> Finding:
    found = [
        f"{here.name}: {here.partitions}, {there.name}: {there.partitions}"
        for here, there in _pairs(facts)
        if there and here.partitions != there.partitions
    ]
    way_out = "keys go to other partitions there: a window adds what lacks; partitions too many need a new remote topic"
    return judged("stop", "partition counts are equal", found, "they are", "they differ", way_out)


def _configs(facts: MigrationFacts) -> Finding:
    flow = facts.flow.name
    lacking = [f"{each.remote}: {each.what}" for each in drifts(facts.topics) if each.will_change]
    missing = "topics and configs are as they will be needed"
    return judged("warn", missing, lacking, "they are", "the next window changes", command("run-window", flow=flow))


def _number(topic: TopicFacts, key: str) -> int:
    """A config's number; -1 (for ever, or not known) where it has none."""
    try:
        return int(topic.configs.get(key, "-1"))
    except ValueError:
        return -1

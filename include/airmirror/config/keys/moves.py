"""The keys of migrations: ``<source>-><target>.move.<name>.…``, each name a move group, and those of a flow for all of them."""

from __future__ import annotations

from airmirror.config.keys.key import BOOLEAN, LIST, LONG, SCHEDULE, STRING, KeyScope

KEYS = (
    LIST("topics", "The source's topics that move together: names and regular expressions; needed.", KeyScope.MOVE),
    LIST(
        "groups",
        "The consumer groups that move with them: names and regular expressions; not set: those that read the topics.",
        KeyScope.MOVE,
    ),
    LIST(
        "transactional.ids",
        "The transactional ids that write them: names and regular expressions; not set: those that are found.",
        KeyScope.MOVE,
    ),
    STRING(
        "principals",
        "The principals that may, separated by semicolons as in super.users (`User:ann;User:CN=app,O=shop`); not set: those "
        "that ACLs name.",
        KeyScope.MOVE,
    ),
)

OF_FLOW = (
    LONG(
        "move.quiet.ms = 5000",
        "How long no end offset of a move group's topics may move, and no transaction be open, until its producers have stopped.",
        minimum=0,
    ),
    LONG(
        "move.soak.ms = 86400000",
        "How long after its producers were cut over a move group can be finished; until then it can be undone.",
        minimum=0,
    ),
    STRING(
        "move.block.producers = none",
        "How a move group's producers are blocked on the source when they are cut over. acl: its principals are denied WRITE.",
        values=("none", "acl"),
    ),
    BOOLEAN(
        "move.reverse = false",
        "Before a move group's producers are cut over, a migration prepares the reverse flow: from the cut-over on, windows copy "
        "what is written on the target back to the source, which stays usable.",
    ),
    SCHEDULE(
        "move.rehearsal.schedule",
        "When the DAG rehearse.<source>.<target> rehearses the migration of each move group: an interval or a cron line. Not "
        "set: when it is triggered.",
    ),
    LONG(
        "move.rehearsal.records = 10000",
        "The newest source offsets of each partition whose records a rehearsal of a migration compares on both clusters.",
        minimum=1,
    ),
    STRING(
        "sync.topic.acls.mode = readers",
        "migrate: a migration's step `mirror` copies what a move group's clients may, WRITE, groups and transactional ids "
        "included, and their users' quotas. readers: only who may read, as every window does.",
        KeyScope.FLOW_ONLY,
        values=("readers", "migrate"),
    ),
)

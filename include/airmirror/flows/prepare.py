"""The beginning of commands and tasks: the flow of a configuration, its ledger, its topics on both sides."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from airmirror.clusters.admin.acls import Acl, topic_acls
from airmirror.clusters.admin.client import TIMEOUT, connect
from airmirror.clusters.protocol.errors import LastStableOffsetStuck
from airmirror.clusters.protocol.routes import Routes, TopicNotDescribed, TopicNotFound
from airmirror.config import Configuration, Flow
from airmirror.ledger import FlowLedger, FreezeLost, Ledger
from airmirror.slot.compression import compression_of
from airmirror.tell import Tell, silent
from airmirror.topics.acls import remote_acls
from airmirror.topics.identity import Neighbours, flows_of_others, introduce, look_around
from airmirror.topics.identity import check as check_identities
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.names import select
from airmirror.topics.remote import TopicPlan
from airmirror.topics.sound import sound_for
from airmirror.topics.sync import SyncReport, apply, look
from airmirror.windows.connect_offsets import with_connect_offsets
from airmirror.windows.errors import frozen_topic, returns_no_more
from airmirror.windows.fence import HeldLease, check_not_shut
from airmirror.windows.mirror import Journal, Mirror, returns_of, reverse_ledger
from airmirror.windows.mirrormaker import refuse_beside
from airmirror.windows.plan import Planned
from airmirror.windows.planning import make_plan
from airmirror.wire.moves import ProducerBlock
from airmirror.wire.owners import WHOLE, Owner

PATIENCE_SECONDS = 2.0


@dataclass(frozen=True)
class Opened:
    """A flow and its part of the ledger."""

    configuration: Configuration
    flow: Flow
    ledger: FlowLedger


@dataclass(frozen=True)
class Prepared:
    """A flow that is ready for a window: source topics with their remote topics, what was refused, and what was done."""

    opened: Opened
    topics: Mapping[str, str]
    refused: tuple[str, ...]
    report: SyncReport

    @property
    def is_refused_for_good(self) -> bool:
        """Whether something was refused that another try would not bring about."""
        return not {str(error) for error in self.report.errors if error.transient}.issuperset(self.refused)


@contextmanager
def open_flow(config: Path, name: str, ledger_url: str, overrides: Mapping[str, str] | None = None) -> Iterator[Opened]:
    """Load the configuration, find the flow, open the ledger; ``overrides`` win over the file's lines. What is wrong with
    other flows is theirs.

    Raises ConfigurationError, UnknownFlow, and what Ledger does.
    """
    configuration = sound_for(config, name, overrides)
    flow = configuration.flow(name)
    with Ledger(ledger_url) as ledger:
        of_flow = ledger.flow(flow.name)
        yield Opened(configuration, as_decided(flow, of_flow), of_flow)


def as_decided(flow: Flow, ledger: FlowLedger) -> Flow:
    """Return the flow with the remote topics that people have decided on, and with what returns, as far as the ledger knows."""
    return replace(flow, remote_topics=ledger.remote_topics(), returns=returns_of(flow, ledger))


def caught_up(opened: Opened, under: HeldLease | None = None, *, soon: bool = False) -> Opened:
    """The same when its ledger has read what is new: its remote topics are those that were decided on by now.

    ``under``: the session of a window that follows, which has caught up already. ``soon``: see ``catch_up_soon``.
    """
    if under is None:
        (catch_up_soon if soon else catch_up_ledger)(opened)
    return replace(opened, flow=as_decided(opened.flow, opened.ledger))


def prepare(opened: Opened, tell: Tell = silent) -> Prepared:
    """Bring about what the target needs. Raises what the guards and what the clusters raise; FlowFrozen; MirrorMakerBeside;
    TopicNotDescribed where nothing of the flow may be seen any more."""
    around = guard(opened)
    for part in filter(None, (opened, backfill_of(opened))):  # what it knows may be of clusters that were there before
        catch_up_soon(part)
    opened = replace(opened, flow=as_decided(opened.flow, opened.ledger))
    check_not_shut(opened.flow, opened.ledger.owners())
    planned = plan_topics(opened, around)
    hidden = _hidden(opened, planned)
    if hidden and not planned.topics:
        raise hidden[0]
    planned = _or_idle(opened.flow, planned)
    is_first = around.own is None and not opened.ledger.last_mappings()
    if is_first and set(planned.topics.values()) - {each.name for each in planned.create}:
        refuse_beside(opened.flow)
    ensure_internal_topics(opened.flow)
    if introduce(opened.flow, around):
        guard(opened)  # of two flows that begin at once, each writes first and then looks: one of them sees the other
    report = apply(opened.flow, planned, tell)
    return Prepared(opened, report.topics, (*report.refused, *map(str, hidden)), report)


def guard(opened: Opened) -> Neighbours:
    """Look at who else writes to the flow's clusters, and at what returns by it. Nothing is written but the ledger.

    Raises SameCluster, EqualClusterIds, AliasDiffers, AliasReused, UnsupportedClientSetting, and what the clusters raise.
    """
    compression_of(opened.flow)  # a codec that there is not, before anything is written
    disabled = [name for name, flow in opened.configuration.flows.items() if not flow.enabled]
    around = look_around(opened.flow, opened.ledger, disabled)
    check_identities(opened.flow, around)
    return around


def backfill_of(opened: Opened) -> Opened | None:
    """The second flow, for records before the first replicated offset (``backfill.into.suffix``).

    Its source has an alias of its own, and so mapping topic, progress and transactional ids. None: it is not configured.
    """
    flow, suffix = opened.flow, opened.flow.settings.backfill_into_suffix
    if not suffix:
        return None
    source = replace(flow.source, alias=flow.source.alias + suffix)
    beside = replace(flow, source=source, auto_offset_reset="earliest", remote_topics={}, returns={})
    return replace(opened, flow=beside, ledger=opened.ledger.part(f"backfill{suffix}"))


def plan_topics(
    opened: Opened, around: Neighbours | None = None, own: Collection[str] = (), *, frozen_too: bool = False
) -> TopicPlan:
    """Return what ``prepare`` will do to remote topics, given the flows of this and other configurations.

    ``own``: topics that the flow may write although its backfill does. ``frozen_too``: as if nothing were frozen. Raises what
    ``guard`` raises.
    """
    strangers, warnings = flows_of_others(opened.flow, around or guard(opened), opened.configuration.flows)
    if around is None:
        catch_up_soon(opened)
    planned = topics_as_known(opened, strangers, own, frozen_too=frozen_too)
    if planned.acls:  # a block is in the mapping topic before it is among the ACLs: what was read is known then
        catch_up_soon(opened)
        planned = replace(planned, acls=_that_stay(opened, planned, _without_blocks(opened, planned)))
    return replace(planned, warnings=(*warnings, *planned.warnings))


def topics_as_known(
    opened: Opened,
    strangers: Collection[Flow] = (),
    own: Collection[str] = (),
    timeout: float = TIMEOUT,
    *,
    frozen_too: bool = False,
) -> TopicPlan:
    """The same by the ledger as it is, and the flows of other configurations that were found; ``timeout``: seconds for an
    answer. Raises what describe() raises."""
    ours = {topic for topic, _ in opened.ledger.state().known}
    beside = backfill_of(opened)
    backfilled = {record.remote_topic for record in beside.ledger.last_mappings().values()} if beside else set()
    planned = look(
        opened.flow,
        timeout=timeout,
        others=(*opened.configuration.enabled, *strangers),
        ours=ours,
        backfilled=backfilled - set(own),
        frozen={} if frozen_too else why_frozen(opened),
    )
    return replace(planned, acls=_without_blocks(opened, planned))


def _without_blocks(opened: Opened, planned: TopicPlan) -> tuple[Acl, ...]:
    """The ACLs to copy, without what keeps writers out of the source for a migration, of this flow or another one from there:
    they still write on the target."""
    source = opened.flow.source.alias
    beside = [flow.name for flow in opened.configuration.flows.values() if flow.source.alias == source]
    blocks = [each for name in beside for each in opened.ledger.other(name).of_kind(ProducerBlock)]
    blocked = {(planned.topics.get(each.topic), each.principal) for each in blocks}
    return tuple(acl for acl in planned.acls if not _denies_writing(acl) or (acl.topic, acl.principal) not in blocked)


def _that_stay(opened: Opened, planned: TopicPlan, acls: tuple[Acl, ...]) -> tuple[Acl, ...]:
    """The ACLs without what a block has denied that went up and came down between two looks at the ledger: its ACL is gone."""
    if not any(map(_denies_writing, acls)):
        return acls
    still = {each for acl in topic_acls(connect(opened.flow.source)) for each in remote_acls(planned.topics, acl)}
    return tuple(acl for acl in acls if not _denies_writing(acl) or acl in still)


def _denies_writing(acl: Acl) -> bool:
    return (acl.permission, acl.operation) == ("DENY", "WRITE")


def why_frozen(opened: Opened) -> dict[str, str]:
    """Return why topics of the source are frozen, by topic; of "" why all others are, empty: it is not frozen. By the ledger,
    which has caught up."""
    flow, ledger = opened.flow, opened.ledger
    still = reverse_ledger(flow, ledger).owners().returning((Owner.RETURNING,)) if flow.returns else {}
    return {topic: returns_no_more(flow.reverse_name) for topic in flow.returns.keys() - still.keys()} | {
        topic: "" if each.owner is Owner.SOURCE else frozen_topic(flow.name, topic, each.by, each.time_ms, each.reason)
        for topic, each in ledger.owners().records.items()
    }


def selected(opened: Opened, topics: Collection[str]) -> Mapping[str, str]:
    """Those of the source's topics that are the flow's and not frozen, each with its remote topic."""
    shut = why_frozen(opened)
    chosen = select(opened.flow, topics)
    return {topic: remote for topic, remote in chosen.items() if not shut.get(topic, shut.get(WHOLE))}


def without_frozen(opened: Opened, planned: TopicPlan) -> TopicPlan:
    """Return a plan that does not tell of topics that they are refused because they are frozen."""
    owners = opened.ledger.owners()
    return replace(planned, refused=tuple(each for each in planned.refused if not owners.why_frozen(each.topic)))


def dry_run(opened: Opened) -> tuple[TopicPlan, list[Planned]]:
    """Return what ``prepare`` would create and a window would copy. Writes only the ledger."""
    topics = _or_idle(opened.flow, plan_topics(opened))
    catch_up_ledger(opened)
    with Mirror.open(opened.flow, opened.ledger, "plan") as mirror:
        mirror.target.refresh([])
        state = with_connect_offsets(mirror, opened.ledger.state(), topics.topics)
        planned = make_plan(mirror, state, topics.topics)
    return topics, without_new(topics, planned)


def without_new(topics: TopicPlan, planned: Sequence[Planned]) -> list[Planned]:
    """Return a plan without errors of remote topics that the next window creates, unless they were once written to."""
    new = {each.name for each in topics.create}
    return [replace(item, error=None) if item.remote_topic in new and item.last is None else item for item in planned]


def read_again(opened: Opened) -> dict[str, int]:
    """Read the flow again into another part of the ledger, and put it in place; return the rows of each table."""
    with suppress(FreezeLost):  # who rebuilds the ledger forgets what it alone knows
        catch_up_ledger(opened)  # it is not ahead of the topics then
    beside = opened.ledger.anew()
    catch_up_ledger(replace(opened, ledger=beside))
    while not opened.ledger.replace_by(beside):
        catch_up_ledger(replace(opened, ledger=beside))
    return {name: len(rows) for name, rows in opened.ledger.contents().items()}


def catch_up_ledger(opened: Opened, patience: float = 60.0) -> None:
    """Read what is new in the flow's internal topics into its ledger. Raises LastStableOffsetStuck after ``patience``.

    Where the target does not have them, what the ledger knows is of another cluster, or of topics that are gone. Raises
    FreezeLost where it knows of a freeze.
    """
    with Journal.open(opened.flow, opened.ledger, "ledger") as journal:
        try:
            journal.catch_up(patience)
        except TopicNotFound as missing:  # before a flow's first window there is nothing to read
            names = journal.topics
            if missing.topic not in (names.mappings, names.progress):
                raise
            if isinstance(missing, TopicNotDescribed):  # it is there, for others
                return
            if missing.topic == names.mappings and opened.ledger.state().scanned:
                opened.ledger.check_no_freeze_is_lost(missing.topic)
                opened.ledger.forget()


def catch_up_soon(opened: Opened) -> None:
    """The same, but what comes after the open transaction of whoever was killed is left for now: the next lease ends it."""
    with suppress(LastStableOffsetStuck):
        catch_up_ledger(opened, PATIENCE_SECONDS)


def _hidden(opened: Opened, planned: TopicPlan) -> list[TopicNotDescribed]:
    """Topics that were replicated and that the source has, but does not list for this user any more: never in silence."""
    known = select(opened.flow, {topic for topic, _ in opened.ledger.state().known})
    missing = known.keys() - planned.topics.keys()
    if not missing:
        return []
    with Routes(opened.flow.source, f"airmirror|{opened.flow.name}|topics") as source:
        found = source.refresh_existing(missing).values()
    return [error for error in found if isinstance(error, TopicNotDescribed)]


def _or_idle(flow: Flow, planned: TopicPlan) -> TopicPlan:
    """The plan; one without topics says so: a standby has nothing to replicate until an operator fails over to it."""
    if planned.topics or planned.refused:
        return planned
    filters = f"topics = {', '.join(flow.topics)} without topics.exclude = {', '.join(flow.topics_exclude)}"
    idle = f"no topic of cluster {flow.source.alias!r} is to be replicated yet: none of its own matches {filters}"
    return replace(planned, warnings=(*planned.warnings, idle))

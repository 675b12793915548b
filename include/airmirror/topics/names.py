"""The replicated topics of a flow, and their names on the target: configuration and naming meet here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from airmirror.config import Configuration, ConfigurationError, Flow, Problem
from airmirror.config.explain import problem_of
from airmirror.config.schedules import CONTINUOUS
from airmirror.errors import AirmirrorError
from airmirror.naming import ReplicationPolicy, TopicFilter, hops, is_cycle, mapping_topic, policy, replicated

LONGEST_NAME = 249
"""Topic.MAX_NAME_LENGTH: a topic is a folder, and a folder's name has 255 characters at most."""


def policy_of(flow: Flow) -> ReplicationPolicy:
    """The flow's replication policy. Raises UnknownReplicationPolicy."""
    return policy(
        flow.replication_policy_class,
        flow.replication_policy_separator,
        flow.internal_topic_separator_enabled,
        flow.source.alias,
        flow.aliases,
    )


def select(flow: Flow, topics: Iterable[str]) -> dict[str, str]:
    """The topics of the source that the flow replicates, each with its remote topic, in order of their names.

    Those that return are among them, whatever filters and names say: people have decided so.
    Raises UnknownReplicationPolicy, InvalidPattern.
    """
    names, topics = policy_of(flow), tuple(topics)
    topic_filter = TopicFilter(flow.topics, flow.topics_exclude)
    source, target = flow.source.alias, flow.target.alias
    heartbeats = flow.settings.heartbeats_replication_enabled
    also_target = other_aliases(flow)
    chosen = {
        topic: flow.remote_topics.get(topic) or names.format_remote_topic(source, topic)
        for topic in topics
        if replicated(
            topic=topic,
            topic_filter=topic_filter,
            policy=names,
            source=source,
            target=target,
            heartbeats_replication_enabled=heartbeats,
            applications=flow.settings.streams_applications,
        )
        and not any(alias != source and also_target.matches(alias) for alias in hops(topic, names))
    }
    chosen |= {topic: flow.returns[topic] for topic in topics if topic in flow.returns}
    return dict(sorted(chosen.items()))


def named_like_source(flow: Flow, topics: Iterable[str]) -> list[str]:
    """Those of the source's ``topics`` that the flow names, and whose names say that they came from the source itself: no flow
    brings those, and the rule against cycles keeps them back."""
    names, chosen = policy_of(flow), TopicFilter(flow.topics, flow.topics_exclude)
    return [
        each
        for each in _cycles(flow, topics)
        if chosen.matches(each) and names.topic_source(each) == flow.source.alias and not names.is_internal_topic(each)
    ]


def came_back(flow: Flow, topics: Iterable[str]) -> set[str]:
    """Those of the source's ``topics`` whose names say that other flows brought them, and that the target has them already."""
    names = policy_of(flow)
    return {each for each in _cycles(flow, topics) if names.topic_source(each) != flow.source.alias}


def _cycles(flow: Flow, topics: Iterable[str]) -> Iterator[str]:
    names = policy_of(flow)
    source, target = flow.source.alias, flow.target.alias
    return (each for each in topics if each not in flow.returns and is_cycle(each, names, source, target))


def other_aliases(flow: Flow) -> TopicFilter:
    """The other names of the flow's target, as declared."""
    return TopicFilter(flow.settings.target_cluster_other_aliases, ())


def _patterns(flow: Flow) -> dict[str, tuple[str, ...]]:
    """The lists of names and regular expressions, by their keys."""
    settings = flow.settings
    return {
        "topics": flow.topics,
        "topics.exclude": flow.topics_exclude,
        "config.properties.exclude": settings.config_properties_exclude,
        "groups": settings.groups,
        "groups.exclude": settings.groups_exclude,
        "topics.compacted": settings.topics_compacted,
        "topics.log.append.time": settings.topics_log_append_time,
        "target.cluster.other.aliases": settings.target_cluster_other_aliases,
    } | {
        f"move.{move.name}.{key}": patterns
        for move in flow.moves
        for key, patterns in (
            ("topics", move.topics),
            ("groups", move.groups or ()),
            ("transactional.ids", move.transactional_ids or ()),
        )
    }


def check(configuration: Configuration) -> None:
    """Raises ConfigurationError, with lines, for what only the topics' rules can tell."""
    if found := problems(configuration):
        raise ConfigurationError(configuration.path, found)


def problems(configuration: Configuration) -> tuple[Problem, ...]:
    """Return the problems that only the topics' rules find, with lines.

    Patterns that can't be read, policies that can't be had, suffixes that make no names of topics, triggers of windows that
    never wait, and flows whose DAGs have the names of another one's.
    """
    found = {}
    owners = {_in_dags(flow.name): flow.name for flow in reversed(configuration.enabled)}  # the first one in the file
    for name, flow in configuration.flows.items():
        questions: dict[str, Callable[[], object]] = {"replication.policy.class": partial(policy_of, flow)}
        questions |= {key: partial(TopicFilter(each, ()).matches, "") for key, each in _patterns(flow).items()}
        reasons: list[tuple[str, str]] = []
        for key, ask in questions.items():
            try:
                ask()
            except AirmirrorError as error:
                reasons.append((key, str(error)))
        reasons += _suffix_problems(configuration, flow)
        reasons += _streams_problems(flow)
        if flow.enabled and (other := owners[_in_dags(name)]) != name:
            taken = f"its DAGs would have the names of those of {other!r}, as replicate.{_in_dags(name)}"
            reasons.append(("enabled", f"{taken}: give a cluster another alias"))
        if flow.settings.window_trigger_records is not None and flow.settings.window_schedule == CONTINUOUS:
            reasons.append(
                ("window.trigger.records", f"window.schedule = {CONTINUOUS} waits for nothing: one or the other")
            )
        for key, reason in reasons:
            problem = problem_of(configuration, name, key, reason)
            found[problem.key] = problem
    return tuple(found.values())


def _in_dags(name: str) -> str:
    """A flow's name as those of its DAGs end."""
    return name.replace("->", ".")


def _streams_problems(flow: Flow) -> Iterator[tuple[str, str]]:
    """An application's group has its id for a name: its state is worth nothing without its positions."""
    key, settings = "streams.applications", flow.settings
    for application in settings.streams_applications:
        try:
            is_moved = TopicFilter(settings.groups, settings.groups_exclude).matches(application)
        except AirmirrorError:
            return  # the check of groups says it
        if not is_moved:
            yield (
                key,
                f"{application!r} is not among groups, so that its positions would not be moved: name it there too",
            )


def _suffix_problems(configuration: Configuration, flow: Flow) -> Iterator[tuple[str, str]]:
    """A suffix makes names of remote topics, and an alias under which the flow's backfills keep their progress."""
    key, suffix = "backfill.into.suffix", flow.settings.backfill_into_suffix
    if suffix is None:
        return
    alias = flow.source.alias + suffix
    if not re.fullmatch(r"[A-Za-z0-9._-]+", suffix):
        yield key, f"{suffix!r} makes no names of topics: Kafka takes letters, digits, '.', '_' and '-'"
    elif len(mapping_topic(alias)) > LONGEST_NAME:
        yield key, f"{mapping_topic(alias)!r} would have more than {LONGEST_NAME} characters"
    elif suffix.endswith((".internal", "-internal")):
        yield key, f"topics that end with {suffix!r} are taken for internal ones, which are never replicated or read"
    elif alias in configuration.clusters:
        yield key, f"the backfills of {flow.source.alias!r} would have the alias {alias!r}, which is a cluster's"
    elif flow.is_aggregate:
        yield key, f"flow {flow.name!r} is an aggregate: what was before is not known of each source apart"

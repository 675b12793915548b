"""The work of the tasks that write reports: of a flow, and of a comparison. Loaded in tasks only."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

from airmirror.config import Comparison
from airmirror.errors import AirmirrorError, listed
from airmirror.evidence.asking import ComparisonRequest, sample_of
from airmirror.evidence.compared_report import compared_report, verdict
from airmirror.evidence.mirrors import compare_clusters
from airmirror.evidence.parts import Execute
from airmirror.flows.gates import expectations_of
from airmirror.flows.report import report_flow
from airmirror.flows.report_rows import Span
from airmirror.flows.selection import Selection
from airmirror.ledger import Ledger
from airmirror.ledger.pages import COMPARISONS, REPORTS, PagePlace, keep_evidence
from airmirror.naming.patterns import is_quick
from airmirror.on_airflow.connections import connected
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.tasks.plans import Show, signer
from airmirror.on_airflow.tasks.spark import CONNECT, BadSparkConnection, kind_of
from airmirror.on_airflow.tasks.window import opened_flow
from airmirror.report.document import Document
from airmirror.report.signing import Signer
from airmirror.topics.sound import sound

log = logging.getLogger(__name__)


class NotProven(AirmirrorError):
    """A flow's report whose verdict is not good. It is written."""

    flow: str
    verdict: str
    says = "flow {0.flow!r}: {0.verdict} The report says which and why."


class ClustersDiffer(AirmirrorError):
    """A comparison that has found differences. Its report is written."""

    comparison: str
    verdict: str
    logs: tuple[str, ...]

    def __str__(self) -> str:
        return f"comparison {self.comparison!r}: {self.verdict} The report names every offset of\n{listed(self.logs)}"


def report(deployment: Deployment, flow: str, span: Span, run: str, show: Show) -> None:
    """Write a flow's report; ``show`` hears of its page. Raises NotProven after it is written, NothingToReport, BadKey."""
    key = signer(deployment)
    with opened_flow(deployment, flow, Selection()) as opened:
        made = report_flow(opened, span, expectations_of(deployment.expectations))
    show(_kept(deployment, made, PagePlace(REPORTS, flow), run, key))
    log.info("%s", made.headline)
    for each in made.not_known:
        log.info("Not known: %s", each)
    if not made.is_good:
        raise NotProven(flow, made.headline)


class SlowPattern(AirmirrorError):
    """A pattern of a run's form that may take for ever to match."""

    comparison: str
    pattern: str
    says = (
        "comparison {0.comparison!r}: {0.pattern!r} may take for ever to match: a pattern of a run has one repetition and no "
        "group; others belong into compare.{0.comparison}.topics"
    )


@dataclass(frozen=True)
class ComparisonChoice:
    """A run's choice among what the configuration compares: topics, times (epoch milliseconds), another sample."""

    topics: tuple[str, ...] = ()
    first_ms: int | None = None
    end_ms: int | None = None
    sample: str | None = None


def compare(deployment: Deployment, name: str, narrowed: ComparisonChoice, run: str, show: Show) -> None:
    """Compare two clusters and write the report; ``show`` hears of its page. Raises ClustersDiffer after it is written.

    Raises UnknownComparison, BadConnection, BadSample, BadKey, and what comparing raises.
    """
    configuration, key = sound(deployment.config).configuration, signer(deployment)
    chosen = configuration.comparison(name)
    source, target = (connected(configuration, cluster) for cluster in (chosen.source, chosen.target))
    asked = _asked(chosen, narrowed)
    with _executing(replace(chosen, source=source, target=target), asked) as execute:
        rows = compare_clusters(source, target, asked, tell=lambda topic: log.info("Now: %s.", topic), execute=execute)
    made = compared_report(source, target, asked, rows, [])
    show(_kept(deployment, made, PagePlace(COMPARISONS, name), run, key))
    log.info("%s", verdict(rows))
    if different := [
        f"{row.topic}-{row.partition}" if row.partition >= 0 else row.topic for row in rows if not row.passes
    ]:
        raise ClustersDiffer(name, verdict(rows), tuple(different))


def _asked(chosen: Comparison, narrowed: ComparisonChoice) -> ComparisonRequest:
    """Return what to compare: of what the configuration names, whatever whoever may trigger asks for. Raises SlowPattern."""
    for pattern in narrowed.topics:
        if not is_quick(pattern):
            raise SlowPattern(chosen.name, pattern)
    return ComparisonRequest(
        topics=narrowed.topics or chosen.topics,
        exclude=chosen.topics_exclude,
        rename=chosen.rename,
        first_ms=narrowed.first_ms,
        end_ms=narrowed.end_ms,
        times=not chosen.ignore_timestamps,
        sample=sample_of((chosen.sample if narrowed.sample is None else narrowed.sample) or "", chosen.sample_seed),
        within=chosen.topics,
    )


def _executing(chosen: Comparison, asked: ComparisonRequest) -> AbstractContextManager[Execute | None]:
    """The function that compares parts on Spark Connect; None where the task itself compares. Raises BadSparkConnection."""
    if not chosen.spark_conn_id:
        return nullcontext()
    if kind_of(chosen.spark_conn_id) != CONNECT:
        raise BadSparkConnection(chosen.spark_conn_id, "comparisons run on Spark Connect only")
    from airmirror.on_spark.comparing import on_spark

    url = SparkConnectHook(chosen.spark_conn_id).get_connection_url()
    return on_spark(chosen.source, chosen.target, asked.view, url)


def _kept(deployment: Deployment, made: Document, place: PagePlace, run: str, key: Signer | None) -> str:
    """Keep a report in the ledger; the path of its page."""
    with Ledger(deployment.ledger) as ledger:
        page = keep_evidence(ledger.engine, place, run, made, key)
    log.info("Report: the button of this name; `airmirror report fetch` writes it, with its JSON, to files.")
    return page

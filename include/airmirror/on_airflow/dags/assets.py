"""The events of a verified window for other DAGs: of the flow's AssetAlias, and OpenLineage's datasets.

An asset is a topic of the target, ``kafka://<first bootstrap server>/<topic>``, as Airflow's Kafka provider and OpenLineage
name it. DAGs can be scheduled on the alias (whatever the flow brings), or on the asset of one topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias, BaseOperator, Context

from airmirror.config import Flow

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airmirror.on_airflow.tasks.window import Received


def alias_of(flow: Flow) -> AssetAlias:
    """``airmirror.<source>.<target>``."""
    return AssetAlias(f"airmirror.{flow.source.alias}.{flow.target.alias}")


def add_events(context: Context, task: BaseOperator, received: Sequence[Received]) -> None:
    """The events of a task, in each alias among its outlets: a topic's asset, with its records and its target offsets by
    partition, ends exclusive."""
    for topic in received:
        uri = f"kafka://{topic.target}/{topic.remote_topic}"
        offsets = {str(partition): list(places) for partition, places in topic.offsets.items()}
        extra: dict[str, Any] = {"source_topic": topic.topic, "records": topic.records, "offsets": offsets}
        for alias in task.outlets:
            context["outlet_events"][alias].add(Asset(uri=uri, name=uri, group="airmirror"), extra=extra)


def lineage_of(received: Sequence[Received]) -> OperatorLineage[Any, Any]:
    """Source topics as inputs, remote topics as outputs."""
    from airflow.providers.common.compat.openlineage.facet import Dataset
    from airflow.providers.openlineage.extractors import OperatorLineage

    return OperatorLineage(
        inputs=[Dataset(f"kafka://{topic.source}", topic.topic) for topic in received],
        outputs=[Dataset(f"kafka://{topic.target}", topic.remote_topic) for topic in received],
    )

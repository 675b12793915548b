"""The tasks of a comparison on Spark's executors: parts in, pickled in rows by the driver; findings out, as JSON."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from airmirror.errors import AirmirrorError
from airmirror.on_spark.tasks import MissingPackage, answered

if TYPE_CHECKING:
    import pyarrow

    from airmirror.evidence.found import Findings


def run_parts(batches: Iterable[pyarrow.RecordBatch], ends: bytes) -> Iterator[pyarrow.RecordBatch]:
    """Compare each part of the rows and yield what was found; for ``mapInArrow``.

    ``ends``: source, target and what of their records counts, pickled: the rows hold no settings.
    """
    from airmirror.on_spark.compare_results import encode

    return answered(batches, lambda spec: encode(_compared(spec, ends)))


def _compared(spec: bytes, ends: bytes) -> Findings | AirmirrorError:
    try:
        from airmirror.clusters.protocol.routes import Routes
        from airmirror.evidence.parts import CLIENT, compare_part

        source, target, view = pickle.loads(ends)
        part = pickle.loads(spec)
        with Routes(source, CLIENT) as here, Routes(target, CLIENT) as there:
            here.refresh([part.source[0].partition.topic])
            there.refresh([part.target[0].partition.topic])
            return compare_part(here, there, view, part)
    except AirmirrorError as error:
        return error
    except ModuleNotFoundError as error:  # some are imported only where they are needed
        return MissingPackage(error.name or str(error))

"""The tasks on Spark's executors: slots, or parts of a comparison, in, pickled in rows by the driver; results out, as JSON."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from airmirror.errors import AirmirrorError
from airmirror.on_spark.results import encode, encode_error

if TYPE_CHECKING:
    import pyarrow

TASKS = "SELECT CAST(id AS INT) AS task, element_at(?, CAST(id AS INT) + 1) AS spec FROM range(0, {count}, 1, {count})"
ANSWER_SCHEMA = "task int, answer binary"


class MissingPackage(AirmirrorError):
    """An executor without a package that slots need."""

    says = (
        "a Spark executor has no package {0.package!r}; install requirements-executor.txt of this release "
        "in the Python that runs its tasks (PYSPARK_PYTHON)"
    )
    package: str


def run_slots(batches: Iterable[pyarrow.RecordBatch], flow: bytes) -> Iterator[pyarrow.RecordBatch]:
    """Run each slot of the rows and yield its results; for ``mapInArrow``.

    ``flow``: the slots' flow with its settings, pickled: the rows have it without them.
    """

    def ran(spec: bytes) -> bytes:
        from airmirror.slot.attempts import run_slot

        return encode(run_slot(replace(pickle.loads(spec), flow=pickle.loads(flow))))

    return _answered(batches, ran)


def run_parts(batches: Iterable[pyarrow.RecordBatch], ends: bytes) -> Iterator[pyarrow.RecordBatch]:
    """Compare each part of the rows and yield what was found; for ``mapInArrow``.

    ``ends``: source, target and what of their records counts, pickled: the rows hold no settings.
    """

    def compared(spec: bytes) -> bytes:
        from airmirror.clusters.protocol.routes import Routes
        from airmirror.evidence.parts import CLIENT, compare_part
        from airmirror.on_spark import compare_results

        source, target, view = pickle.loads(ends)
        part = pickle.loads(spec)
        with Routes(source, CLIENT) as here, Routes(target, CLIENT) as there:
            here.refresh([part.source[0].partition.topic])
            there.refresh([part.target[0].partition.topic])
            return compare_results.encode(compare_part(here, there, view, part))

    return _answered(batches, compared)


def _answered(batches: Iterable[pyarrow.RecordBatch], work: Callable[[bytes], bytes]) -> Iterator[pyarrow.RecordBatch]:
    """Answer each task of the rows (TASKS), one row each (ANSWER_SCHEMA)."""
    import pyarrow

    for batch in batches:
        for number, spec in zip(batch.column("task").to_pylist(), batch.column("spec").to_pylist(), strict=True):
            found = _answer(work, spec)
            yield pyarrow.RecordBatch.from_arrays(
                [
                    _array_of_one(pyarrow.int32(), struct.pack("=i", number)),
                    _array_of_one(pyarrow.binary(), struct.pack("=ii", 0, len(found)), found),
                ],
                names=["task", "answer"],
            )


def _answer(work: Callable[[bytes], bytes], spec: bytes) -> bytes:
    """The answer of a task, or the error for which it has none."""
    try:
        return work(spec)
    except AirmirrorError as error:
        return encode_error(error)
    except ModuleNotFoundError as error:  # some are imported only where they are needed
        return encode_error(MissingPackage(error.name or str(error)))


def _array_of_one(kind: pyarrow.DataType, *buffers: bytes) -> pyarrow.Array:
    """An array of one value. pyarrow.array would load pandas, which takes 45 MB of a slot's memory and 0.3 s."""
    import pyarrow

    return pyarrow.Array.from_buffers(kind, 1, [None, *map(pyarrow.py_buffer, buffers)])

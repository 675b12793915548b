"""The tasks on Spark's executors: slots in, pickled in rows by the driver; results out, which the driver does not unpickle."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from airmirror.errors import AirmirrorError
from airmirror.on_spark.results import encode

if TYPE_CHECKING:
    import pyarrow

    from airmirror.slot.contract import SlotResult

TASKS = "SELECT CAST(id AS INT) AS task, element_at(?, CAST(id AS INT) + 1) AS spec FROM range(0, {count}, 1, {count})"
ANSWER_SCHEMA = "task int, answer binary"


class MissingPackage(AirmirrorError):
    """An executor without a package that slots need."""

    package: str

    def __str__(self) -> str:
        return (
            f"a Spark executor has no package {self.package!r}; install requirements-executor.txt of this release "
            "in the Python that runs its tasks (PYSPARK_PYTHON)"
        )


def run_slots(batches: Iterable[pyarrow.RecordBatch], flow: bytes) -> Iterator[pyarrow.RecordBatch]:
    """Run each slot of the rows and yield its results; for ``mapInArrow``.

    ``flow``: the slots' flow with its settings, pickled: the rows have it without them.
    """
    return answered(batches, lambda spec: encode(_run(spec, flow)))


def answered(batches: Iterable[pyarrow.RecordBatch], answer: Callable[[bytes], bytes]) -> Iterator[pyarrow.RecordBatch]:
    """Answer each task of the rows (TASKS), one row each (ANSWER_SCHEMA)."""
    import pyarrow

    for batch in batches:
        for number, spec in zip(batch.column("task").to_pylist(), batch.column("spec").to_pylist(), strict=True):
            found = answer(spec)
            yield pyarrow.RecordBatch.from_arrays(
                [
                    _array_of_one(pyarrow.int32(), struct.pack("=i", number)),
                    _array_of_one(pyarrow.binary(), struct.pack("=ii", 0, len(found)), found),
                ],
                names=["task", "answer"],
            )


def _array_of_one(kind: pyarrow.DataType, *buffers: bytes) -> pyarrow.Array:
    """An array of one value. pyarrow.array would load pandas, which takes 45 MB of a slot's memory and 0.3 s."""
    import pyarrow

    return pyarrow.Array.from_buffers(kind, 1, [None, *map(pyarrow.py_buffer, buffers)])


def _run(spec: bytes, flow: bytes) -> list[SlotResult] | AirmirrorError:
    try:
        from airmirror.slot.attempts import run_slot

        return run_slot(replace(pickle.loads(spec), flow=pickle.loads(flow)))
    except ModuleNotFoundError as error:  # some are imported only where they are needed
        return MissingPackage(error.name or str(error))

"""The tasks on Spark's executors: slots in, pickled in rows by the driver; results out, which the driver does not unpickle."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airmirror.errors import AirmirrorError
from airmirror.on_spark.results import encode

if TYPE_CHECKING:
    import pyarrow

    from airmirror.slot.contract import SlotResult

SLOT_SCHEMA = "slot int, spec binary"
RESULT_SCHEMA = "slot int, results binary"


@dataclass(eq=False)
class MissingPackage(AirmirrorError):
    """An executor without a package that slots need."""

    package: str

    def __str__(self) -> str:
        return (
            f"a Spark executor has no package {self.package!r}; install requirements-executor.txt of this release "
            "in the Python that runs its tasks (PYSPARK_PYTHON)"
        )


def run_slots(batches: Iterable[pyarrow.RecordBatch], flow: bytes) -> Iterator[pyarrow.RecordBatch]:
    """Run each slot of the rows (SLOT_SCHEMA) and yield its results (RESULT_SCHEMA); for ``mapInArrow``.

    ``flow``: the slots' flow with its settings, pickled: the rows have it without them.
    """
    import pyarrow

    for batch in batches:
        for number, spec in zip(batch.column("slot").to_pylist(), batch.column("spec").to_pylist(), strict=True):
            results = encode(_run(spec, flow))
            yield pyarrow.RecordBatch.from_arrays(
                [
                    array_of_one(pyarrow.int32(), struct.pack("=i", number)),
                    array_of_one(pyarrow.binary(), struct.pack("=ii", 0, len(results)), results),
                ],
                names=["slot", "results"],
            )


def array_of_one(kind: pyarrow.DataType, *buffers: bytes) -> pyarrow.Array:
    """An array of one value. pyarrow.array would load pandas, which takes 45 MB of a slot's memory and 0.3 s."""
    import pyarrow

    return pyarrow.Array.from_buffers(kind, 1, [None, *map(pyarrow.py_buffer, buffers)])


def _run(spec: bytes, flow: bytes) -> list[SlotResult] | AirmirrorError:
    try:
        from airmirror.slot.attempts import run_slot

        return run_slot(replace(pickle.loads(spec), flow=pickle.loads(flow)))
    except ModuleNotFoundError as error:  # some are imported only where they are needed
        return MissingPackage(error.name or str(error))

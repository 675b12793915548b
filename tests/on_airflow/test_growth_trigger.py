"""The doorbell: it rings once for so many new records, and again only for as many more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from airmirror.on_airflow.growth_trigger import GrowthTrigger, growth


def test_it_rings_for_every_so_many_records() -> None:
    sizes: Iterator[int] = iter([100, 109, 110, 110, 119, 145, 20, 29, 30])

    async def rung() -> list[int]:
        found = []
        async for grown in growth(lambda: next(sizes), 10, every=0):
            found.append(grown)
            if len(found) == 3:
                break
        return found

    assert asyncio.run(rung()) == [10, 35, 10]


def test_airflow_can_keep_it() -> None:
    path, arguments = GrowthTrigger("a->b", 5).serialize()
    module, _, name = path.rpartition(".")
    assert (module, name) == (GrowthTrigger.__module__, GrowthTrigger.__name__)
    assert GrowthTrigger(**arguments).serialize() == (path, arguments)

"""A record that is another one on a broker's disk by now, under a checksum that is right: only who compares finds it."""

from __future__ import annotations

from airmirror.wire.batches import HEADER_SIZE, parse
from airmirror_local.brokers import Broker
from support.answers import alter

AHEAD = 20  # bytes of a batch's records that stay: gzip's, lz4's or zstd's header, xerial's and the length of a block


def alter_value(broker: Broker, topic: str, partition: int, value: bytes) -> bytes:
    """Alter the first byte of a value, in the first batch that has it, which is not compressed; the value there is now."""
    for file in sorted((broker.directory / "data" / f"{topic}-{partition}").glob("*.log")):
        log = bytearray(file.read_bytes())
        for batch in parse(memoryview(bytes(log)), 0, len(log)):
            at = log.find(value, batch.position, batch.position + batch.size)
            if at >= 0:
                alter(log, batch, at - batch.position - 61)
                with file.open("r+b") as there:
                    there.seek(batch.position)
                    there.write(log[batch.position : batch.position + batch.size])
                return bytes(log[at : at + len(value)])
    raise AssertionError(f"{topic}-{partition} has no {value!r}")


def damage(broker: Broker, topic: str, partition: int, offset: int) -> None:
    """Fill the records of the batch that begins at an offset with ones, but for what says how they are compressed."""
    for file in sorted((broker.directory / "data" / f"{topic}-{partition}").glob("*.log")):
        log = bytearray(file.read_bytes())
        for batch in parse(memoryview(bytes(log)), 0, len(log)):
            if batch.base_offset == offset:
                first, end = batch.position + HEADER_SIZE + AHEAD, batch.position + batch.size
                log[first:end] = b"\xff" * (end - first)
                alter(log, batch, AHEAD)  # which mends the checksum
                with file.open("r+b") as there:
                    there.seek(batch.position)
                    there.write(log[batch.position : end])
                return
    raise AssertionError(f"no batch of {topic}-{partition} begins at {offset}")

"""The compression of batches that come without one: ``compression.type`` of the target's producer settings, for narrow lines."""

from __future__ import annotations

from airmirror.clusters.security.model import UnsupportedClientSetting
from airmirror.config import Flow
from airmirror.wire.batch import CODECS, LEVELS, Compression

DEFAULT = {"gzip": "-1"}  # as Kafka has it
SETTING = "producer.compression.type"


def compression_of(flow: Flow) -> Compression | None:
    """Return the compression for batches that come without one; None: they stay as they are.

    Raises UnsupportedClientSetting for a codec or a level that there is not.
    """
    settings = flow.target.client("producer")
    name = settings.get("compression.type", "none").strip().lower()
    codec = next((number for number, known in CODECS.items() if known == name), None)
    if codec is None:
        raise UnsupportedClientSetting(flow.target.alias, SETTING, f"must be one of {', '.join(CODECS.values())}")
    if not codec:
        return None
    if codec not in LEVELS:
        return Compression(codec)
    given = settings.get(f"compression.{name}.level", DEFAULT.get(name))
    if given is None:
        return Compression(codec)
    lowest, highest = LEVELS[codec]
    key = f"producer.compression.{name}.level"
    try:
        level = int(given)
    except ValueError as error:
        raise UnsupportedClientSetting(flow.target.alias, key, "must be a number") from error
    if not lowest <= level <= highest:
        raise UnsupportedClientSetting(flow.target.alias, key, f"must be between {lowest} and {highest}")
    return Compression(codec, level)

"""Values as Kafka's ConfigDef reads them, and which of them are secret."""

from __future__ import annotations

import re

from airmirror.config import schedules
from airmirror.config.keys import Key, KeyType, Use

HIDDEN = "[hidden]"
SOURCE = "<source>"
"""The placeholder of the source cluster's alias in a key's default."""

_SECRET = re.compile(
    r"password|passphrase|secret|jaas\.config|private\.key|\.pem$|keystore\.(key|certificate\.chain)$"
    r"|truststore\.certificates$|(^|\.)(token|credentials?|api\.key)$",
    re.IGNORECASE,
)
TOPIC = "{topic}"
"""The placeholder of a source's topic in the name of its copy; ``{topic#east.}``: without that beginning, as in a shell."""
_TOPIC = re.compile(r"\{topic(?:#([^{}]+))?\}")

_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)%", re.ASCII)
_SECONDS = re.compile(r"[+-]?\d{1,12}(?:\.\d{1,3})?", re.ASCII)
_RANGES = re.compile(r"\d{1,5}", re.ASCII)
LONGEST_MS = schedules.LONGEST_SECONDS * 1000
_BITS = {KeyType.SHORT: 16, KeyType.INT: 32, KeyType.LONG: 64}


def names_topic(template: str) -> bool:
    """Return whether the name of a copy has a place for the source's topic."""
    return bool(_TOPIC.search(template))


def renamed(template: str, topic: str) -> str:
    """The name of a topic's copy."""
    return _TOPIC.sub(lambda found: topic.removeprefix(found[1] or ""), template)


def is_secret(key: str) -> bool:
    """Return whether values of this key are passwords, JAAS configurations, PEM keys and the like."""
    return bool(_SECRET.search(key))


def as_list(value: str) -> tuple[str, ...]:
    """A list, split on commas with the whitespace around them; an empty value is an empty list."""
    value = value.strip()
    return tuple(re.split(r"\s*,\s*", value)) if value else ()


def as_boolean(value: str) -> bool:
    """``true`` or ``false`` in any case. Raises ValueError."""
    lowered = value.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("must be true or false")
    return lowered == "true"


def as_integer(value: str, type_: KeyType = KeyType.LONG, minimum: float | None = None) -> int:
    """A decimal number that fits the type and is at least ``minimum``. Raises ValueError."""
    if not re.fullmatch(r"[+-]?[0-9]+", value.strip()):
        raise ValueError("must be a whole number")
    number = int(value)
    bits = _BITS[type_]
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"must fit the type {type_} ({bits} bits)")
    if minimum is not None and number < minimum:
        raise ValueError(f"must be at least {minimum}")
    return number


def as_seconds(value: str, minimum: float | None = None) -> float:
    """A decimal number, of at most three places, that is at least ``minimum``. Raises ValueError."""
    if not _SECONDS.fullmatch(value.strip()):
        raise ValueError("must be a number of seconds, as in 60 or 0.5")
    seconds = float(value)
    if minimum is not None and seconds < minimum:
        raise ValueError(f"must be at least {minimum}")
    return seconds


def as_sample(value: str) -> tuple[int, int]:
    """A sample, ``10%`` or ``20``: its share of a partition in thousandths of a percent, or its ranges; the other is 0.

    Raises ValueError.
    """
    share = _SHARE.fullmatch(value.strip())
    thousandths = round(float(share[1]) * 1000) if share else 0
    ranges = int(value) if _RANGES.fullmatch(value.strip()) else 0
    if not (0 < thousandths <= 100_000 or 0 < ranges <= 10_000):
        raise ValueError(
            "must be a share of each partition, as in 0.5% or 10%, or a number of ranges of each, as in 20"
        )
    return thousandths, ranges


def check(key: Key, value: str, source: str = "") -> None:
    """Raises ValueError, whose message says what a value of this key must be; ``source`` is the flow's, where known."""
    value = value.strip()
    if key.type is KeyType.BOOLEAN:
        as_boolean(value)
    elif key.type in _BITS:
        _check_integer(key, value)
    elif key.type is KeyType.SECONDS:
        as_seconds(value, key.minimum)
    elif key.type is KeyType.SCHEDULE:
        schedules.check(value, key.name)
    elif key.type is KeyType.SAMPLE:
        as_sample(value)
    elif not value and key.default and key.type is not KeyType.LIST:
        raise ValueError("must not be empty")
    elif key.values and not {*(as_list(value) if key.type is KeyType.LIST else (value,))} <= {*key.values}:
        raise ValueError(f"must be {'some' if key.type is KeyType.LIST else 'one'} of {', '.join(key.values)}")
    if key.use is Use.DEFAULT_ONLY:
        default = (key.default or "").replace(SOURCE, source or SOURCE)
        # Connect takes classes without their package too; a name with the source's alias is checked for each flow.
        accepted = (default, default.rpartition(".")[2]) if key.type is KeyType.CLASS else (default,)
        if SOURCE not in default and value not in accepted:
            raise ValueError(f"{f'can only be {default}' if default else 'must not be set'}: {key.reason}")


def _check_integer(key: Key, value: str) -> None:
    if value not in key.values:
        try:
            number = as_integer(value, key.type, key.minimum)
            if key.name.endswith(".ms") and key.use is Use.USED and number > LONGEST_MS:
                raise ValueError(f"must be at most {LONGEST_MS}, ten years")
        except ValueError as error:
            raise ValueError(" or ".join((str(error), *key.values))) from None


_SERVER = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:,/]+):([0-9]{1,5})")
_CLIENT_VALUES = {
    "security.protocol": ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
    "isolation.level": ("read_committed", "read_uncommitted"),
    "auto.offset.reset": ("earliest", "latest"),
}


def check_client(name: str, value: str) -> None:
    """Raises ValueError, whose message says what a value of this client setting (its Java name) must be."""
    allowed = _CLIENT_VALUES.get(name)
    if allowed and value.strip().lower() not in allowed:
        raise ValueError(f"must be one of {', '.join(allowed)}")
    if name == "interceptor.classes" and value.strip():
        raise ValueError("must not be set: Java classes can't run here, and interceptors may change records")
    if name.endswith((".ms", ".bytes")):
        as_integer(value)
    if name == "bootstrap.servers":
        for server in as_list(value) or ("",):
            found = _SERVER.fullmatch(server)
            if not found or not 0 < int(found[2]) < 65536:
                raise ValueError(f"must be host:port, separated by commas; {server!r} is not")

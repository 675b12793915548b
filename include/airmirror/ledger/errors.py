"""The errors of the ledger. It can be rebuilt from Kafka: what Kafka itself has lost is FreezeLost."""

from __future__ import annotations

from airmirror.errors import AirmirrorError, command, named
from airmirror.wire.owners import WHOLE


class LedgerUnavailable(AirmirrorError, transient=True):
    """The ledger's database does not answer. ``url`` is without its password."""

    says = (
        "the ledger at {0.url} can't be used: {0.reason}; while it is away, commands of a flow take an empty one, and "
        "fill it from Kafka: --ledger sqlite:///new.db. Pages of plans and reports are in this one only"
    )
    url: str
    reason: str


class ValueNotKept(AirmirrorError):
    """A value that the ledger's database can't keep, such as a number beyond 64 bits. Nothing of it was written."""

    says = "the ledger at {0.url} can't keep a value, which no record of Airmirror's has: {0.reason}"
    url: str
    reason: str


class PageTooLarge(AirmirrorError):
    """A page that is larger than the ledger keeps. Nothing of it is kept."""

    says = (
        "the page {0.page} has {0.size:,} bytes, and the ledger keeps at most {0.most:,} of a file: narrow the run "
        "down to some topics, or let the command line write it to files (--write of the report or plan, --report of compare)"
    )
    page: str
    size: int
    most: int


class LedgerUrlInvalid(AirmirrorError, bad_input=True):
    """The text is no URL of a database that the ledger supports. It is not repeated: it may hold a password."""

    says = (
        "the ledger's URL can't be used: {0.reason}; give one like sqlite:////var/lib/airmirror/ledger.db or "
        "postgresql+psycopg2://user:password@host/database"
    )
    reason: str


class LedgerOfOtherVersion(AirmirrorError):
    """The database has a schema of another version than this code's."""

    says = (
        "the ledger at {0.url} has schema version {0.version}, this airmirror knows version {0.known}: install the "
        "airmirror that made it, or use another database (a ledger is rebuilt from Kafka)"
    )
    url: str
    version: str
    known: str


class LedgerBegunAnew(AirmirrorError, transient=True):
    """Another process forgot a flow's part of the ledger while records were read for it: to load them would leave a gap."""

    flow: str
    topic: str
    says = (
        "another process emptied the ledger of flow {0.flow!r} while {0.topic} was read into it ({airmirror:ledger rebuild}, "
        "or the topic was recreated); try again"
    )


class FreezeLost(AirmirrorError):
    """A frozen flow whose mapping topic was deleted, so that only the ledger knows of the freeze: windows would copy again."""

    flow: str
    topic: str
    frozen: tuple[str, ...]

    def __str__(self) -> str:
        which = () if WHOLE in self.frozen else self.frozen
        return (
            f"flow {self.flow!r} is frozen{' for ' if which else ''}{named(which)}, and {self.topic} with the record of it was "
            "deleted: windows would copy again into topics that applications may write on the target. Pause the flow's windows; "
            f"then {command('ledger', 'rebuild', flow=self.flow)} forgets the freeze, and, where applications write there, "
            f"{command('flow', 'freeze', '--reason', '…', '--yes', flow=self.flow, topics=which)} freezes it again"
        )

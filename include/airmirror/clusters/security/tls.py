"""Kafka's TLS settings as a context of Python's ssl."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airmirror.clusters.security.model import Security, Store, UnsupportedClientSetting
from airmirror.clusters.security.stores import identity, trusted
from airmirror.errors import AirmirrorError

RECORD_BYTES = 1 << 14  # the largest TLS record (RFC 8446, 5.1)
_VERSIONS = {"TLSV1.2": ssl.TLSVersion.TLSv1_2, "TLSV1.3": ssl.TLSVersion.TLSv1_3}


class TlsFailed(AirmirrorError):
    """A broker and this client do not trust each other, or find no common version."""

    says = (
        "cluster {0.cluster!r}: no TLS with broker {0.broker}: {0.reason}; see {0.cluster}.ssl.truststore.… "
        "(whom to trust), {0.cluster}.ssl.keystore.… (who we are) and {0.cluster}.security.protocol"
    )
    cluster: str
    broker: str
    reason: str


def context_of(alias: str, security: Security) -> ssl.SSLContext:
    """Whom to trust (the system's authorities without a truststore) and who we are. Raises UnsupportedClientSetting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = security.checks_names
    # As Java: whatever is in the truststore is trusted, be it an authority or a broker's own certificate.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _limit(alias, context, security.protocols)
    if security.truststore is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        try:
            context.load_verify_locations(cadata=trusted(security.truststore))
        except ssl.SSLError as error:
            raise UnsupportedClientSetting(alias, "ssl.truststore", f"a certificate can't be read ({error})") from error
    if security.keystore is not None:
        _present(context, security.keystore)
    return context


def _limit(alias: str, context: ssl.SSLContext, protocols: tuple[str, ...]) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if protocols:
        known = sorted(_VERSIONS[each.upper()] for each in protocols if each.upper() in _VERSIONS)
        if not known:
            raise UnsupportedClientSetting(alias, "ssl.enabled.protocols", "must hold TLSv1.2 or TLSv1.3")
        context.minimum_version, context.maximum_version = known[0], known[-1]


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """The path of a file that holds a secret text, for who reads from files only, and for that moment.

    It is memory of this process, and ends with it however that ends; where there is no such thing, of mode 0600.
    """
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("airmirror"), "w") as memory:
            memory.write(text)
            memory.flush()
            yield f"/proc/self/fd/{memory.fileno()}"
        return
    with tempfile.TemporaryDirectory(prefix="airmirror-") as directory:  # of mode 0700
        file = Path(directory) / "identity.pem"
        file.touch(0o600)
        file.write_text(text)
        yield str(file)


def _present(context: ssl.SSLContext, store: Store) -> None:
    chain, key, password = identity(store)
    with _as_file(f"{key}\n{chain}") as file:
        try:
            context.load_cert_chain(file, password=password or "")  # an empty one: else it would ask at the terminal
        except (ssl.SSLError, ValueError) as error:
            reason = f"no certificate and key that fit, or ssl.key.password does not open the key ({error})"
            raise UnsupportedClientSetting(store.alias, store.name, reason) from error

"""Truststores and keystores as Kafka's own clients name them, read into PEM texts.

PEM as it is; PKCS#12 with the package cryptography; Java's own old format by ``jks``. ``JKS`` is what Java calls any: a
file of that type may well be PKCS#12 (what keytool makes since Java 9), and the other way round: the content tells.
"""

from __future__ import annotations

import base64
import re
import textwrap
from pathlib import Path

from airmirror.clusters.security import jks
from airmirror.clusters.security.model import Store, UnsupportedClientSetting

_JCEKS = b"\xce\xce\xce\xce"  # Sun's other old format
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.+?-----END \1PRIVATE KEY-----", re.DOTALL)


def kind_of(store: Store) -> str:
    """PEM, JKS or PKCS12: what the store really is. Raises UnsupportedClientSetting for what can't be read."""
    if store.kind == "PEM":
        return store.kind
    if store.kind not in ("PKCS12", "JKS"):
        raise UnsupportedClientSetting(store.alias, f"{store.name}.type", "must be PEM, PKCS12 or JKS")
    content = _content(store)
    if content.startswith(_JCEKS):
        way_out = (
            f"keytool -importkeystore -srckeystore {Path(store.location).name} -srcstoretype JCEKS -destkeystore "
            f"{Path(store.location).stem}.p12 -deststoretype PKCS12 converts it; set {store.name}.type = PKCS12"
        )
        raise UnsupportedClientSetting(
            store.alias, f"{store.name}.location", f"Java's format JCEKS can't be read; {way_out}"
        )
    return "JKS" if content.startswith(jks.MAGIC) else "PKCS12"


def trusted(store: Store) -> str:
    """The certificates of a truststore, PEM. Raises UnsupportedClientSetting."""
    kind = kind_of(store)
    if kind == "PEM":
        return _certificates(store, _text(store))
    return (_jks(store) if kind == "JKS" else _pkcs12(store))[0]


def identity(store: Store) -> tuple[str, str, str | None]:
    """The certificate chain of a keystore (its own certificate first), its key, both PEM, and the key's password.

    Raises UnsupportedClientSetting.
    """
    kind = kind_of(store)
    if kind != "PEM":
        certificates, key = _jks(store, with_key=True) if kind == "JKS" else _pkcs12(store)
        if not key:
            raise UnsupportedClientSetting(store.alias, f"{store.name}.location", "it has no private key")
        return certificates, key, None
    text = _text(store)
    found = _KEY.search(store.key or text)
    if not found:
        setting = f"{store.name}.{'key' if store.key else 'location'}"
        raise UnsupportedClientSetting(store.alias, setting, "it has no PEM text of a private key (PKCS#8)")
    return _certificates(store, text), found[0], store.key_password


def _text(store: Store) -> str:
    return store.certificates or _content(store).decode(errors="replace")


def _content(store: Store) -> bytes:
    try:
        return Path(store.location).read_bytes()
    except OSError as error:
        reason = f"{store.location} can't be read: {error.strerror or type(error).__name__}"
        raise UnsupportedClientSetting(store.alias, f"{store.name}.location", reason) from error


def _certificates(store: Store, text: str) -> str:
    found = _CERTIFICATE.findall(text)
    if not found:
        raise UnsupportedClientSetting(store.alias, store.name, "it has no PEM text of a certificate")
    return "\n".join((*found, ""))


def _jks(store: Store, *, with_key: bool = False) -> tuple[str, str]:
    """Certificates and an empty text, or ``with_key`` the chain of the private key and the key, PEM."""
    try:
        found = jks.read(_content(store), store.password, store.key_password)
    except jks.BadStore as error:
        raise UnsupportedClientSetting(store.alias, f"{store.name}.location", str(error)) from error
    ders = found.chain if with_key else found.certificates
    if not ders and not with_key:
        raise UnsupportedClientSetting(store.alias, f"{store.name}.location", "it has no certificate")
    key = _pem("PRIVATE KEY", found.key) if found.key and with_key else ""
    return "".join(_pem("CERTIFICATE", der) for der in ders), key


def _pem(label: str, der: bytes) -> str:
    lines = textwrap.wrap(base64.b64encode(der).decode(), 64)
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))


def _pkcs12(store: Store) -> tuple[str, str]:
    """Certificates (the one of the key first) and the key, or an empty text, PEM."""
    content = _content(store)
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ModuleNotFoundError as error:
        reason = (
            "PKCS#12 is read with the package cryptography (the extra crypto), which is not installed; PEM needs none"
        )
        raise UnsupportedClientSetting(store.alias, f"{store.name}.type", reason) from error
    try:
        found = pkcs12.load_pkcs12(content, None if store.password is None else store.password.encode())
    except ValueError as error:
        reason = f"no PKCS#12 store that {store.name}.password opens ({error})"
        raise UnsupportedClientSetting(store.alias, f"{store.name}.location", reason) from error
    all_of_them = [each for each in (found.cert, *found.additional_certs) if each is not None]
    if not all_of_them:
        raise UnsupportedClientSetting(store.alias, f"{store.name}.location", "it has no certificate")
    certificates = "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in all_of_them)
    if found.key is None:
        return certificates, ""
    return certificates, found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

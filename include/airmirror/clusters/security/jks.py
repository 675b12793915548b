"""Java's own old format of stores, JKS: certificates, and private keys under a password, read without Java.

Big-endian. After a magic number, a version and a count of entries, each entry has a tag (1: private key with its chain,
2: certificate), an alias, a time in ms, and its content; certificates stand after a type's name (version 2) and their
length. A SHA-1 digest of the password, the words "Mighty Aphrodite" and everything before ends the store. A private key is
an EncryptedPrivateKeyInfo of Sun's own: salt, the key XORed with a chain of SHA-1 digests that begins with the salt, and a
digest of password and key (OpenJDK: sun.security.provider.JavaKeyStore and KeyProtector).
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from airmirror.wire.primitives import MalformedRecord, Reader

MAGIC = b"\xfe\xed\xfe\xed"
_WHITENER = b"Mighty Aphrodite"
_DIGEST = 20  # bytes of a SHA-1, and of a salt
_KEY, _CERTIFICATE = 1, 2
_PROTECTED = bytes.fromhex("2b060104012a02110101")  # 1.3.6.1.4.1.42.2.17.1.1, Sun's way to encrypt a key
_SEQUENCE, _OBJECT, _OCTETS = 0x30, 0x06, 0x04


class BadStore(ValueError):
    """A store that is damaged, or that a password does not open; the message says which."""


@dataclass(frozen=True)
class JavaStore:
    """``certificates``: those that are trusted; ``chain`` and ``key``: of the first private key (b"": none). All DER."""

    certificates: tuple[bytes, ...]
    chain: tuple[bytes, ...] = ()
    key: bytes = b""


def read(content: bytes, password: str | None, key_password: str | None = None) -> JavaStore:
    """Read a store. As in Java, without a password nothing is checked, and a key has the store's where it has none.

    Raises BadStore.
    """
    if password is not None:
        _check(content, password)
    at = _Reader(content[:-_DIGEST])
    if at.take(4) != MAGIC:
        raise BadStore("it is no JKS store")
    version, count = at.unpack(">II")
    if version not in (1, 2):
        raise BadStore(f"it is damaged: there is no version {version} of JKS")
    certificates: list[bytes] = []
    chain: list[bytes] = []
    key = b""
    for _ in range(count):
        (tag,) = at.unpack(">I")
        at.take(*at.unpack(">H"))  # the alias
        at.take(8)  # the time
        if tag == _CERTIFICATE:
            certificates.append(_certificate(at, version))
        elif tag == _KEY:
            protected = at.take(*at.unpack(">I"))
            its = [_certificate(at, version) for _ in range(*at.unpack(">I"))]
            if not key and (secret := key_password or password) is not None:
                key, chain = _unprotected(protected, secret), its
        else:
            raise BadStore(f"it is damaged: an entry has the tag {tag}")
    if at.left:
        raise BadStore("it is damaged: it has bytes after its last entry")
    return JavaStore(tuple(certificates), tuple(chain), key)


def _check(content: bytes, password: str) -> None:
    digest = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + content[:-_DIGEST]).digest()
    if digest != content[-_DIGEST:]:
        raise BadStore("its password does not open it, or it is damaged")


def _certificate(at: _Reader, version: int) -> bytes:
    if version == 2 and (kind := at.take(*at.unpack(">H"))) != b"X.509":
        raise BadStore(f"it has a certificate of type {kind.decode(errors='replace')!r}; X.509 can be read")
    return at.take(*at.unpack(">I"))


def _unprotected(info: bytes, password: str) -> bytes:
    """The key, PKCS#8 DER, in an EncryptedPrivateKeyInfo: the algorithm, and what it made."""
    outer = _Reader(_Reader(info).tagged(_SEQUENCE))
    algorithm, protected = _Reader(outer.tagged(_SEQUENCE)).tagged(_OBJECT), outer.tagged(_OCTETS)
    if algorithm != _PROTECTED or len(protected) < 2 * _DIGEST:
        raise BadStore("its private key is encrypted in another way than Java's KeyProtector does it")
    salt, encrypted, digest = protected[:_DIGEST], protected[_DIGEST:-_DIGEST], protected[-_DIGEST:]
    secret = password.encode("utf-16-be")
    stream = bytearray()
    while len(stream) < len(encrypted):
        salt = hashlib.sha1(secret + salt).digest()
        stream += salt
    key = bytes(one ^ other for one, other in zip(encrypted, stream, strict=False))
    if hashlib.sha1(secret + key).digest() != digest:
        raise BadStore("the password does not open its private key (ssl.key.password, else that of the store)")
    return key


class _Reader(Reader):
    """A store's bytes, taken one part after the other. Raises BadStore where they end too soon."""

    def take(self, size: int) -> bytes:
        try:
            return super().take(size)
        except MalformedRecord as error:
            raise BadStore("it is damaged: it ends too soon") from error

    def unpack(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def tagged(self, tag: int) -> bytes:
        """The content of the next DER element, which must have a tag."""
        found, length = self.take(2)
        if found != tag:
            raise BadStore("its private key is damaged")
        return self.take(int.from_bytes(self.take(length & 0x7F)) if length & 0x80 else length)

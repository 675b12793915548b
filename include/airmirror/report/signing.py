"""Detached Ed25519 signatures (RFC 8032) of a report's canonical JSON: 64 bytes next to it, as openssl makes and checks them."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from airmirror.report.errors import BadKey

MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class Signer:
    """A private key. It is never shown."""

    _key: Ed25519PrivateKey

    @property
    def public_key(self) -> str:
        return name_of(self._key.public_key())

    def sign(self, data: bytes) -> bytes:
        return self._key.sign(data)


def signer(file: Path, password: str = "") -> Signer:
    """The private key of a PEM file. Raises BadKey."""
    return signer_of_pem(_read(file), str(file), password)


def signer_of_pem(pem: bytes, name: str, password: str = "") -> Signer:
    """The private key of a text; ``name`` says where it is. Raises BadKey."""
    try:
        key = load_pem_private_key(pem, password.encode() or None)
    except TypeError as error:  # a password where there is none to give, or none where there is
        raise BadKey(name, "its password is missing, or it has none") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadKey(name, "it holds no private key in PEM, or the password is wrong") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise BadKey(name, "its key is not one of Ed25519")
    return Signer(key)


def public_key(file: Path) -> str:
    """The name of a PEM file's public key. Raises BadKey."""
    try:
        key = load_pem_public_key(_read(file))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadKey(str(file), "it holds no public key in PEM") from error
    if not isinstance(key, Ed25519PublicKey):
        raise BadKey(str(file), "its key is not one of Ed25519")
    return name_of(key)


def name_of(key: Ed25519PublicKey) -> str:
    """The 32 bytes of a public key, in base64."""
    return b64encode(key.public_bytes_raw()).decode()


def is_signed_by(raw_key: bytes, data: bytes, signature: bytes) -> bool:
    """Return whether the owner of a public key has signed these bytes."""
    try:
        Ed25519PublicKey.from_public_bytes(raw_key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _read(file: Path) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read(MOST_BYTES)
    except OSError as error:
        raise BadKey(str(file), error.strerror or str(error)) from error

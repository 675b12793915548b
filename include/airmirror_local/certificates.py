"""An authority, and what it signs, as the PEM texts and stores that Kafka's settings name."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Authority:
    """A certificate and its key; a self-signed one signs others."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def pkcs12(self, password: str, chain: tuple[Authority, ...] = ()) -> bytes:
        return pkcs12.serialize_key_and_certificates(
            b"me",
            self.key,
            self.certificate,
            [each.certificate for each in chain],
            BestAvailableEncryption(password.encode()),
        )

    def truststore(self, password: str) -> bytes:
        """A PKCS#12 store of this certificate alone."""
        encryption = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(None, None, None, [self.certificate], encryption)

    def signs(self, name: str, address: str = "") -> Authority:
        """A certificate for ``name``, valid for an IP ``address``."""
        return _made(name, address, self)


def authority(name: str = "an authority") -> Authority:
    return _made(name, "", None)


def _made(name: str, address: str, issuer: Authority | None) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if address:
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        builder = builder.add_extension(names, critical=False)
    return Authority(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)

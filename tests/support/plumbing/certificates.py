"""A certificate for 127.0.0.1, signed by itself."""

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from interchain_events.events.subscriptions.grpc_server import Tls


def certificate(folder: Path) -> Tls:
    """Make a certificate in a folder, valid for an hour."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = x509.CertificateBuilder(
        name, name, key.public_key(), 1, now, now + dt.timedelta(hours=1)
    )
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = made.add_extension(address, critical=False).sign(key, hashes.SHA256())
    encoding = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "tls.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / "tls.key").write_bytes(key.private_bytes(*encoding))
    return Tls(folder / "tls.crt", folder / "tls.key")

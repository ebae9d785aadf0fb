"""Principals, the identities of callers and canisters (IC-2), and the ids of canisters (IC-3)."""

import re
from base64 import b32decode, b32encode
from binascii import Error, crc32
from functools import lru_cache
from hashlib import sha224
from typing import Final, Self

from interchain_events.icrc72.ic.errors import PrincipalError
from pubsub_emulator.primitives.hashing import blake2_256

LONGEST: Final = 29
"""The most bytes that a principal has."""

CANISTERS_OF_A_SUBNET: Final = 1 << 20
"""How many canister ids belong to each subnet (IC-3)."""

_TEXT: Final = re.compile(r"[a-z2-7]{1,5}(-[a-z2-7]{1,5})*", re.ASCII)
_CLASSES: Final = {
    1: "opaque",
    2: "self-authenticating",
    3: "derived",
    4: "anonymous",
    0x7F: "reserved",
}


class Principal(bytes):
    """The id of a canister, a user or a subnet, of 0 to 29 bytes. Ids are sorted by their bytes."""

    __slots__ = ()

    def __new__(cls, raw: bytes = b"") -> Self:
        """Make a principal. Raises `PrincipalError` if there are more than 29 bytes."""
        if len(raw) > LONGEST:
            raise PrincipalError(f"a principal has at most {LONGEST} bytes, not {len(raw)}")
        return super().__new__(cls, raw)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse the textual form, in upper or lower case (IC-2a).

        Raises `PrincipalError` if this is not, apart from case, the text of the principal: the
        checksum must be right and the groups must have five letters.
        """
        lowered = text.lower()
        if not text.isascii() or _TEXT.fullmatch(lowered) is None:
            raise PrincipalError(f"{text[:80]!r} is not the text of a principal")
        letters = lowered.replace("-", "").upper()
        try:
            raw = b32decode(letters + "=" * (-len(letters) % 8))
        except Error as error:
            raise PrincipalError(f"{text[:80]!r} is not the text of a principal") from error
        if not 4 <= len(raw) <= 4 + LONGEST:
            raise PrincipalError(f"{text[:80]!r} is not the text of a principal: {len(raw)} bytes")
        principal = cls(raw[4:])
        if principal.text != lowered:
            raise PrincipalError(
                f"{text[:80]!r} is not the text of a principal: the canonical text is"
                f" {principal.text}"
            )
        return principal

    @property
    def text(self) -> str:
        """Return the textual form: CRC-32 and bytes in base32, in groups of five letters."""
        return _text_of(self)

    @property
    def kind(self) -> str:
        """Return the class of the principal, which its last byte gives (IC-2b).

        It is `management`, `anonymous`, `opaque`, `self-authenticating`, `derived` or `reserved`.
        Unknown last bytes count as `opaque`.
        """
        if not self:
            return "management"
        return "anonymous" if self == b"\x04" else _CLASSES.get(self[-1], "opaque")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Principal({self.text})"


@lru_cache(maxsize=1 << 14)
def _text_of(raw: bytes) -> str:
    letters = b32encode(crc32(raw).to_bytes(4, "big") + raw).decode().rstrip("=").lower()
    return "-".join(letters[at : at + 5] for at in range(0, len(letters), 5))


@lru_cache(maxsize=1 << 14)
def shared_principal(raw: bytes) -> Principal:
    """Return the principal with these bytes, usually the same object as before.

    The states of many canisters contain it. Raises `PrincipalError` if there are more than 29.
    """
    return Principal(raw)


MANAGEMENT: Final = Principal()
"""The principal of the management canister."""
ANONYMOUS: Final = Principal(b"\x04")
"""The principal of users without a key."""


def self_authenticating(der: bytes) -> Principal:
    """Return the principal of a DER-encoded public key."""
    return Principal(sha224(der).digest() + b"\x02")


def canister_id(subnet: int, index: int) -> Principal:
    """Return the id of the canister number `index` of a subnet, counted from 0.

    Raises `PrincipalError` if the subnet has no such number.
    """
    if subnet < 0 or not 0 <= index < CANISTERS_OF_A_SUBNET:
        raise PrincipalError(f"subnet {subnet} has no canister number {index}")
    raw = (subnet * CANISTERS_OF_A_SUBNET + index).to_bytes(8, "big") + b"\x01\x01"
    return shared_principal(raw)


def subnet_of(principal: Principal) -> int | None:
    """Return the subnet of a canister id, or `None` for a principal that is not a canister id."""
    if len(principal) != 10 or not principal.endswith(b"\x01\x01"):
        return None
    return int.from_bytes(principal[:8], "big") // CANISTERS_OF_A_SUBNET


def key_of(seed: bytes, label: str) -> bytes:
    """Return a DER-encoded Ed25519 public key drawn from a seed.

    Its 32 bytes are a hash, so nobody knows the secret key and nothing can be signed with it.
    """
    return bytes.fromhex("302a300506032b6570032100") + blake2_256(b"ic key" + seed + label.encode())

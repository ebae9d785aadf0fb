"""The account that publishes: its key, its fees and its signed transactions."""

import hashlib
import hmac
import json
import os
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import rlp
from coincurve import PrivateKey
from Crypto.Hash import keccak
from Crypto.Protocol.KDF import scrypt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from interchain_events.distributor.adapter.evm.node import MOST_PRICE, EvmNode
from pubsub_emulator.primitives.errors import PubsubError

MOST_FILE: Final = 64 * 1024
"""The greatest size of a keystore file, in bytes."""
MOST_MEMORY: Final = 512 * 2**20
"""The most memory that deriving a key from a password may take, in bytes."""


class KeyUnusable(PubsubError):
    """Raised if a key cannot be read. The message names the file or variable."""


class Fees(NamedTuple):
    """The most that a transaction pays, in wei for each unit of gas."""

    price: int
    """The greatest price, including the tip."""
    tip: int | None = None
    """The tip for the block's author, `None` in a legacy transaction."""

    def raised(self, now: "Fees") -> "Fees":
        """Return fees for replacing a transaction with these fees.

        They are an eighth higher, since nodes refuse a replacement that raises the price by less
        than a tenth. If `now`, the usual fees, are higher, those are returned.
        """
        price = min(max(now.price, self.price * 9 // 8 + 1), MOST_PRICE)
        return Fees(
            price,
            None if self.tip is None else min(max(now.tip or 0, self.tip * 9 // 8 + 1), price),
        )


async def usual_fees(node: EvmNode, fixed: int | None) -> Fees:
    """Return the fees that are usual now.

    They are legacy fees if `fixed` is given or if blocks have no base fee, otherwise EIP-1559 fees.
    Raises `ClientError`.
    """
    if fixed is not None:
        return Fees(fixed)
    base = (await node.newest()).base_fee_per_gas
    if base is None:
        return Fees(await node.price("eth_gasPrice"))
    tip = await node.price("eth_maxPriorityFeePerGas")
    # Twice the base fee, because it can rise in the blocks until the transaction is included.
    return Fees(min(2 * base + tip, MOST_PRICE), tip)


def keccak256(data: bytes) -> bytes:
    """Return the Keccak-256 hash, 32 bytes."""
    return keccak.new(data=data, digest_bits=256).digest()


class Account:
    """An account with a 32-byte key.

    Raises `ValueError` if the bytes are not a key.
    """

    def __init__(self, key: bytes) -> None:
        self._key = PrivateKey(key)
        self.address = (
            "0x" + keccak256(self._key.public_key.format(compressed=False)[1:])[12:].hex()
        )
        """The address as `0x` and 40 hex digits in lower case."""

    def signed(
        self, chain_id: int, nonce: int, gas: int, fees: Fees, call: tuple[str, bytes]
    ) -> bytes:
        """Return a signed transaction: EIP-155 without a tip, EIP-1559 with one.

        `call` has the address that is called and the data. An empty address creates a contract.
        """
        what = (gas, bytes.fromhex(call[0][2:]), 0, call[1])
        if fees.tip is None:
            fields = (nonce, fees.price, *what)
            recovery, *signature = self._sign(rlp.encode((*fields, chain_id, 0, 0)))
            return bytes(rlp.encode((*fields, chain_id * 2 + 35 + recovery, *signature)))
        typed = (chain_id, nonce, fees.tip, fees.price, *what, ())
        return b"\2" + bytes(rlp.encode((*typed, *self._sign(b"\2" + rlp.encode(typed)))))

    def _sign(self, data: bytes) -> tuple[int, int, int]:
        """Return the recovery id and the two numbers of a signature."""
        made = self._key.sign_recoverable(keccak256(data), hasher=None)
        return made[64], int.from_bytes(made[:32]), int.from_bytes(made[32:64])


def key_of_environment(name: str) -> Account:
    """Return the account whose key an environment variable has: 32 bytes in hexadecimal.

    Raises `KeyUnusable`.
    """
    try:
        text = os.environ.get(name, "").strip().removeprefix("0x")
        return Account(bytes.fromhex(text if len(text) == 64 else ""))
    except ValueError:
        raise KeyUnusable(
            f"the environment variable {name} does not hold a key of 32 bytes in hex"
        ) from None


def _unhex(value: object) -> bytes:
    """Return bytes from hexadecimal text.

    Other values give no bytes, and then fail the length check.
    """
    return bytes.fromhex(value) if isinstance(value, str) else b""


_Bytes = Annotated[bytes, BeforeValidator(_unhex), Field(max_length=64)]
_Key = Annotated[_Bytes, Field(min_length=32, max_length=32)]


class _Derivation(BaseModel):
    """How the file's key is derived from the password.

    With scrypt by `n`, `r` and `p`, with PBKDF2 by `c` rounds.
    """

    dklen: Literal[32]
    salt: _Bytes
    n: int = Field(default=2, ge=2, le=2**24)
    r: int = Field(default=8, ge=1, le=64)
    p: int = Field(default=1, ge=1, le=16)
    c: int = Field(default=1, ge=1, le=10_000_000)
    prf: Literal["hmac-sha256"] = "hmac-sha256"

    def key(self, kdf: str, password: str) -> bytes:
        """Return the derived key, 32 bytes.

        Raises `ValueError` if deriving it costs too much memory.
        """
        if kdf == "pbkdf2":
            return hashlib.pbkdf2_hmac("sha256", password.encode(), self.salt, self.c, 32)
        if 128 * self.n * self.r > MOST_MEMORY:
            raise ValueError(f"its key derivation takes more than {MOST_MEMORY >> 20} MiB")
        return bytes(scrypt(password, self.salt, 32, N=self.n, r=self.r, p=self.p))


class _Parameters(BaseModel):
    """The parameters of the cipher."""

    iv: Annotated[_Bytes, Field(min_length=16, max_length=16)]


class _Crypto(BaseModel):
    """The encrypted key, and how it is decrypted."""

    cipher: Literal["aes-128-ctr"]
    cipherparams: _Parameters
    ciphertext: _Key
    kdf: Literal["scrypt", "pbkdf2"]
    kdfparams: _Derivation
    mac: _Key


class _Keystore(BaseModel):
    """A keystore file."""

    crypto: _Crypto
    version: Literal[3]


def key_of_keystore(path: Path, password: str) -> Account:
    """Return the account of a keystore file (Web3 Secret Storage, version 3).

    Raises `KeyUnusable`.
    """
    try:
        with path.open("rb") as file:
            found: object = json.loads(file.read(MOST_FILE))
        # Some programs write `Crypto` instead of `crypto`.
        fields = (
            {str(name).lower(): value for name, value in found.items()}
            if isinstance(found, dict)
            else found
        )
        crypto = _Keystore.model_validate(fields).crypto
        key = crypto.kdfparams.key(crypto.kdf, password)
        if not hmac.compare_digest(keccak256(key[16:] + crypto.ciphertext), crypto.mac):
            raise KeyUnusable(f"{path}: the password is wrong")
        cipher = Cipher(AES(key[:16]), CTR(crypto.cipherparams.iv)).decryptor()
        return Account(cipher.update(crypto.ciphertext) + cipher.finalize())
    except OSError as error:
        raise KeyUnusable(f"{path}: {error.strerror or error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise KeyUnusable(
            f"{path}: not a keystore file of version 3: {place}: {first['msg']}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise KeyUnusable(f"{path}: not a keystore file that can be used: {error}") from None

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
"""The most memory that the derivation of a key from a password may take, in bytes."""


class KeyUnusable(PubsubError):
    """Raised if a key cannot be read. The message names the file or variable."""


class Fees(NamedTuple):
    """The most that a transaction pays, in wei per unit of gas."""

    price: int
    """The greatest price, including the tip."""
    tip: int | None = None
    """The tip for the block's author, `None` in a legacy transaction."""

    def raised(self, usual: "Fees") -> "Fees":
        """Return the fees with which a transaction with these fees can be replaced.

        They are at least an eighth higher, because nodes refuse a replacement that raises the price
        by less than a tenth, and at least the usual ones. The price is at most `MOST_PRICE`.
        """
        price = min(max(usual.price, self.price * 9 // 8 + 1), MOST_PRICE)
        if self.tip is None:
            return Fees(price)
        tip = max(usual.tip or 0, self.tip * 9 // 8 + 1)
        return Fees(price, min(tip, price))


async def usual_fees(node: EvmNode, fixed: int | None) -> Fees:
    """Return the fees that are usual now, or the price `fixed` if it is given.

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


class EvmAccount:
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
        address, data = call
        # The transaction transfers no value.
        content = (gas, bytes.fromhex(address[2:]), 0, data)
        if fees.tip is None:
            fields = (nonce, fees.price, *content)
            recovery, *signature = self._sign(rlp.encode((*fields, chain_id, 0, 0)))
            return bytes(rlp.encode((*fields, chain_id * 2 + 35 + recovery, *signature)))
        # The last field is the access list, which is empty.
        typed = (chain_id, nonce, fees.tip, fees.price, *content, ())
        signed = (*typed, *self._sign(b"\2" + rlp.encode(typed)))
        return b"\2" + bytes(rlp.encode(signed))

    def _sign(self, data: bytes) -> tuple[int, int, int]:
        """Return the recovery id and the numbers `r` and `s` of a signature of data."""
        signature = self._key.sign_recoverable(keccak256(data), hasher=None)
        return signature[64], int.from_bytes(signature[:32]), int.from_bytes(signature[32:64])


def key_of_environment(name: str) -> EvmAccount:
    """Return the account whose key is in an environment variable, as 32 bytes in hexadecimal.

    Raises `KeyUnusable`.
    """
    try:
        text = os.environ.get(name, "").strip().removeprefix("0x")
        return EvmAccount(bytes.fromhex(text if len(text) == 64 else ""))
    except ValueError:
        raise KeyUnusable(
            f"the environment variable {name} does not hold a key of 32 bytes in hex"
        ) from None


def _unhex(value: object) -> bytes:
    """Return the bytes of hexadecimal text.

    Other values become no bytes, which fail the later check of the length.
    """
    return bytes.fromhex(value) if isinstance(value, str) else b""


_Bytes = Annotated[bytes, BeforeValidator(_unhex), Field(max_length=64)]
_Key = Annotated[_Bytes, Field(min_length=32, max_length=32)]


class _Derivation(BaseModel):
    """The parameters by which the file's key is derived from the password.

    `n`, `r` and `p` are those of scrypt, and `c` is the number of rounds of PBKDF2.
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

        Raises `ValueError` if the derivation would take more than `MOST_MEMORY`.
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


def key_of_keystore(path: Path, password: str) -> EvmAccount:
    """Return the account of a keystore file (Web3 Secret Storage, version 3).

    Raises `KeyUnusable` if the file cannot be read or the password is wrong.
    """
    try:
        with path.open("rb") as file:
            content: object = json.loads(file.read(MOST_FILE))
        if isinstance(content, dict):
            # Some programs write `Crypto` instead of `crypto`.
            content = {str(name).lower(): value for name, value in content.items()}
        crypto = _Keystore.model_validate(content).crypto
        key = crypto.kdfparams.key(crypto.kdf, password)
        if not hmac.compare_digest(keccak256(key[16:] + crypto.ciphertext), crypto.mac):
            raise KeyUnusable(f"{path}: the password is wrong")
        cipher = Cipher(AES(key[:16]), CTR(crypto.cipherparams.iv)).decryptor()
        return EvmAccount(cipher.update(crypto.ciphertext) + cipher.finalize())
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

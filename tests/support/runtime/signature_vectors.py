"""Makes tests/vectors/signatures: `python tests/support/runtime/signature_vectors.py`.

Sr25519 signatures differ each time.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.runtime.accounts import (  # noqa: E402  # after the path
    SUBSCRIBER,
    Signer,
    call,
    network,
    signed,
    signer,
)

from pubsub_emulator.emulator.fixtures import FixtureMaker, write_fixture  # noqa: E402
from pubsub_emulator.primitives.hashing import blake2_256  # noqa: E402
from pubsub_emulator.primitives.header import Header, aura_pre_digest, aura_seal  # noqa: E402
from pubsub_emulator.primitives.hexadecimal import hexed  # noqa: E402
from pubsub_emulator.primitives.signatures import Scheme  # noqa: E402
from pubsub_emulator.primitives.types import Slot  # noqa: E402
from pubsub_emulator.runtime.accounts.extrinsic import Era  # noqa: E402

FOLDER = ROOT / "tests" / "vectors" / "signatures"
UNIT = 10**10
NAMES = {Scheme.ED25519: "Ed25519", Scheme.SR25519: "Sr25519", Scheme.ECDSA: "Ecdsa"}


def _flipped(data: bytes, at: int, bit: int = 1) -> bytes:
    changed = bytearray(data)
    changed[at] ^= bit
    return bytes(changed)


def _header(slot: int) -> Header:
    roots = (blake2_256(b"parent"), 7, blake2_256(b"state"), blake2_256(b"extrinsics"))
    return Header(*roots, (aura_pre_digest(Slot(slot)),))


def _sealed(header: Header, by: Signer, change: int | None = None, bit: int = 1) -> Header:
    signature = by.sign(header.pre_hash())
    if change is not None:
        signature = _flipped(signature, change, bit)
    return replace(header, digest=(*header.digest, aura_seal(signature)))


def seals() -> list[dict[str, Any]]:
    """Return headers with one pre-runtime digest and one seal. Two authorities take turns."""
    out = []
    for scheme in (Scheme.ED25519, Scheme.SR25519):
        other = Scheme.SR25519 if scheme is Scheme.ED25519 else Scheme.ED25519
        alice, bob = signer("Alice", scheme), signer("Bob", scheme)
        stranger = signer("Alice", other)
        good = _sealed(_header(4), alice)
        cases = [
            ("the author whose turn it is", good, True),
            ("the other author in its turn", _sealed(_header(5), bob), True),
            ("an author out of turn", _sealed(_header(4), bob), False),
            ("a flipped bit in the first half of the seal", _sealed(_header(4), alice, 3), False),
            ("a flipped bit in the second half of the seal", _sealed(_header(4), alice, 40), False),
            ("the seal's highest bit flipped", _sealed(_header(4), alice, 63, 0x80), False),
            ("another header under the same seal", replace(good, number=8), False),
            ("a key of another scheme", _sealed(_header(4), stranger), False),
            ("no seal", _header(4), False),
        ]
        out += [
            {
                "name": f"{NAMES[scheme]}: {name}",
                "scheme": NAMES[scheme],
                "authorities": [hexed(alice.public), hexed(bob.public)],
                "header": hexed(header.encode()),
                "holds": holds,
            }
            for name, header, holds in cases
        ]
    return out


def signatures() -> list[dict[str, Any]]:
    """Return messages of several lengths, with valid and invalid signatures."""
    out = []
    for scheme in Scheme:
        eve, alice = signer("Eve", scheme), signer("Alice", scheme)
        for length in (0, 1, 32, 256, 300):
            message = bytes(range(256)) * 2
            message = message[:length]
            signature = eve.sign(message)
            cases = [(f"{length} bytes", signature, message, eve.account, True)]
            if length == 32:
                cases += [
                    (
                        "a flipped bit of the signature",
                        _flipped(signature, 5),
                        message,
                        eve.account,
                        False,
                    ),
                    (
                        "a flipped bit of the message",
                        signature,
                        _flipped(message, 5),
                        eve.account,
                        False,
                    ),
                    ("another account", signature, message, alice.account, False),
                    ("one byte short", signature[:-1], message, eve.account, False),
                    ("zeros", bytes(len(signature)), message, eve.account, False),
                ]
            out += [
                {
                    "name": f"{NAMES[scheme]}: {name}",
                    "scheme": NAMES[scheme],
                    "account": hexed(account),
                    "message": hexed(said),
                    "signature": hexed(made),
                    "holds": holds,
                }
                for name, made, said, account, holds in cases
            ]
    return out


def write() -> None:
    """Write both files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    document = {"seals": seals(), "signatures": signatures()}
    (FOLDER / "signatures.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    maker = FixtureMaker(per_kind=100)
    net = network()
    net.observe(maker)
    net.step(2)
    transfer = call(
        net, SUBSCRIBER, "Balances", "transfer_keep_alive", signer("Bob").account, 5 * UNIT
    )
    batch = call(net, SUBSCRIBER, "Utility", "batch", [transfer] * 6)
    extrinsics = [signed(net, SUBSCRIBER, transfer, signer("Alice", scheme)) for scheme in Scheme]
    net.offer(
        SUBSCRIBER,
        [*extrinsics, signed(net, SUBSCRIBER, batch, signer("Eve"), era=Era(64, 0), tip=3)],
    )
    kept = len(maker.fixtures)
    net.step()
    [found] = [each for each in maker.fixtures[kept:] if each.chain == SUBSCRIBER]
    about = (
        "A block with a signed extrinsic of each scheme, and one whose payload is signed by its"
        " hash."
    )
    write_fixture(
        found.model_copy(update={"name": "signed-block", "about": about}),
        FOLDER / "signed-block.json",
    )


if __name__ == "__main__":
    write()

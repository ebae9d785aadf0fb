"""Sr25519 signatures that depend only on key and message (PS-90), without further packages.

Sr25519 is Schnorr's signature over Ristretto255 with a Merlin transcript as its hash. The usual
library draws the nonce from the system's random numbers, so that the same block would have another
hash in each run. Here the nonce is a hash of the secret key and the message, as in Ed25519. Any
verifier accepts such a signature, because it cannot see how the nonce was made.

    transcript  "SigningContext": "" = "substrate", "sign-bytes" = message,
                "proto-name" = "Schnorr-sig", "sign:pk" = A
    nonce       r = blake2_512(secret nonce ++ A ++ message) mod L
    signature   R = r B, then s = k a + r mod L with bit 255 set,
                where k is the challenge "sign:c" after "sign:R" = R

The transcript follows the specifications of Merlin and of STROBE 1.0.2.
"""

from collections.abc import Sequence
from hashlib import blake2b, sha512
from typing import Final, NamedTuple

from pubsub_emulator.primitives.ristretto import ORDER, combined, decode

_SCALAR: Final = 32
"""The length of a scalar and of a point in bytes."""
_MARK: Final = 1 << 255
"""The bit by which a signature of this scheme differs from one of Ed25519."""


# Keccak-f[1600], the permutation of STROBE. Lanes are u64, in the order x + 5 y.

_WIDTH: Final = 64
_LANE: Final = (1 << _WIDTH) - 1
_SIDE: Final = 5
_ROUNDS: Final = 24


def _round_constants() -> tuple[int, ...]:
    """Return the constants of iota, from the linear feedback register of the standard."""
    register = 1
    constants = []
    for _ in range(_ROUNDS):
        constant = 0
        for bit in range(7):
            if register & 1:
                constant |= 1 << ((1 << bit) - 1)
            register <<= 1
            if register & 0x100:
                register ^= 0x171
        constants.append(constant)
    return tuple(constants)


def _moves() -> tuple[tuple[int, int, int], ...]:
    """Return the steps of rho and pi: for each lane its place, its new place and its rotation."""
    moves = [(0, 0, 0)]
    x = 1
    y = 0
    for step in range(_ROUNDS):
        rotation = (step + 1) * (step + 2) // 2 % _WIDTH
        moves.append((x + _SIDE * y, y + _SIDE * ((2 * x + 3 * y) % _SIDE), rotation))
        x, y = y, (2 * x + 3 * y) % _SIDE
    return tuple(moves)


_CONSTANTS: Final = _round_constants()
_MOVES: Final = _moves()


def _rotated(lane: int, by: int) -> int:
    return (lane << by | lane >> (_WIDTH - by)) & _LANE


def _permuted(lanes: Sequence[int]) -> list[int]:
    """Return the lanes after the permutation."""
    state = list(lanes)
    for constant in _CONSTANTS:
        columns = [
            state[x] ^ state[x + 5] ^ state[x + 10] ^ state[x + 15] ^ state[x + 20]
            for x in range(_SIDE)
        ]
        mixed = [columns[x - 1] ^ _rotated(columns[(x + 1) % _SIDE], 1) for x in range(_SIDE)]
        moved = [0] * len(state)
        for place, new_place, rotation in _MOVES:
            moved[new_place] = _rotated(state[place] ^ mixed[place % _SIDE], rotation)
        for row in range(0, len(state), _SIDE):
            lane = moved[row : row + _SIDE]
            for x in range(_SIDE):
                state[row + x] = lane[x] ^ (~lane[(x + 1) % _SIDE] & lane[(x + 2) % _SIDE])
        state[0] ^= constant
    return state


# STROBE-128, as far as Merlin needs it

_RATE: Final = 166
"""The bytes that one permutation takes, without the two of the padding."""
_STATE: Final = 200
_INBOUND: Final = 1
_APPLICATION: Final = 2
_CIPHER: Final = 4
_META: Final = 16


class Transcript:
    """A Merlin transcript: labelled messages, from which challenges follow."""

    def __init__(self, label: bytes) -> None:
        head = bytes((1, _RATE + 2, 1, 0, 1, 12 * 8)) + b"STROBEv1.0.2"
        self._state = bytearray(head.ljust(_STATE, b"\0"))
        self._permute()
        self._place = 0
        self._begin = 0
        self._start(_META | _APPLICATION)
        self._absorb(b"Merlin v1.0")
        self.append(b"dom-sep", label)

    def append(self, label: bytes, message: bytes) -> None:
        """Add a message."""
        self._start(_META | _APPLICATION)
        self._absorb(label + len(message).to_bytes(4, "little"))
        self._start(_APPLICATION)
        self._absorb(message)

    def challenge(self, label: bytes, length: int) -> bytes:
        """Return `length` bytes that depend on everything added so far."""
        self._start(_META | _APPLICATION)
        self._absorb(label + length.to_bytes(4, "little"))
        self._start(_INBOUND | _APPLICATION | _CIPHER)
        challenge = bytearray()
        for _ in range(length):
            challenge.append(self._state[self._place])
            self._state[self._place] = 0
            self._step()
        return bytes(challenge)

    def _start(self, flags: int) -> None:
        """Begin an operation, which the state remembers with the place of the one before."""
        before = self._begin
        self._begin = self._place + 1
        self._absorb(bytes((before, flags)))
        # Operations with a key stream begin on a fresh block.
        if flags & _CIPHER and self._place:
            self._run()

    def _absorb(self, data: bytes) -> None:
        for byte in data:
            self._state[self._place] ^= byte
            self._step()

    def _step(self) -> None:
        self._place += 1
        if self._place == _RATE:
            self._run()

    def _run(self) -> None:
        """Pad the block and permute the state."""
        self._state[self._place] ^= self._begin
        self._state[self._place + 1] ^= 4
        self._state[_RATE + 1] ^= 0x80
        self._permute()
        self._place = 0
        self._begin = 0

    def _permute(self) -> None:
        size = _WIDTH // 8
        lanes = [
            int.from_bytes(self._state[start : start + size], "little")
            for start in range(0, _STATE, size)
        ]
        self._state = bytearray(
            b"".join([lane.to_bytes(size, "little") for lane in _permuted(lanes)])
        )


def signing_transcript(message: bytes) -> Transcript:
    """Return the transcript of a message in the context of Substrate."""
    transcript = Transcript(b"SigningContext")
    transcript.append(b"", b"substrate")
    transcript.append(b"sign-bytes", message)
    return transcript


class Pair(NamedTuple):
    """A key pair."""

    scalar: int
    """The secret scalar."""
    nonce: bytes
    """The secret of nonces, 32 bytes."""
    public: bytes
    """The public key, 32 bytes."""


def pair(seed: bytes) -> Pair:
    """Return the key pair of a mini secret of 32 bytes, expanded as Substrate expands it."""
    expanded = sha512(seed).digest()
    # The lowest three bits are cleared, and a division by the cofactor then removes them.
    low = int.from_bytes(expanded[:_SCALAR], "little") & ((1 << 254) - 8)
    scalar = (low | 1 << 254) >> 3
    return Pair(scalar, expanded[_SCALAR:], combined(scalar).encode())


def _challenge(public: bytes, point: bytes, message: bytes) -> int:
    """Return k of the module's table."""
    transcript = signing_transcript(message)
    transcript.append(b"proto-name", b"Schnorr-sig")
    transcript.append(b"sign:pk", public)
    transcript.append(b"sign:R", point)
    return int.from_bytes(transcript.challenge(b"sign:c", 64), "little") % ORDER


def sign(key: Pair, message: bytes) -> bytes:
    """Return the signature of a message, 64 bytes.

    It is deterministic: the same key and message always have the same signature.
    """
    seed = key.nonce + key.public + message
    nonce = int.from_bytes(blake2b(seed, digest_size=64).digest(), "little") % ORDER
    point = combined(nonce).encode()
    challenge = _challenge(key.public, point, message)
    response = (challenge * key.scalar + nonce) % ORDER
    return point + (response | _MARK).to_bytes(_SCALAR, "little")


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether a signature of 64 bytes is one of `message` by the key `public`.

    It is `False` for bytes that are not a signature or not a key.
    """
    point = signature[:_SCALAR]
    marked = int.from_bytes(signature[_SCALAR:], "little")
    response = marked ^ _MARK
    if len(signature) != 2 * _SCALAR or not marked & _MARK or response >= ORDER:
        return False
    key = decode(public)
    if key is None:
        return False
    challenge = _challenge(public, point, message)
    return combined(response, ORDER - challenge, key).encode() == point

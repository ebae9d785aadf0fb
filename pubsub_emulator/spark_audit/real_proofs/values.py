"""Readers of hex strings, numbers, headers and messages in the JSON of nodes and exports.

Each value is checked, and errors name its place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import U32_MAX, Hash, ParaId, RelayBlockNumber
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.message_chains import (
    InboundDownwardMessage,
    InboundHrmpMessage,
)

Horizontal = tuple[tuple[ParaId, tuple[InboundHrmpMessage, ...]], ...]
"""Messages by sender, in ascending order."""


@dataclass(frozen=True, slots=True)
class RawHeader:
    """A header of a relay chain or parachain."""

    number: int
    hash: Hash
    """The hash, computed from `encoded`."""
    parent: Hash
    state_root: Hash
    extrinsics_root: Hash
    encoded: bytes
    """SCALE of the header, with its digest."""


@dataclass(frozen=True, slots=True)
class Values:
    """Readers of values that raise the caller's kind of error.

    Each method gets the value's place in words for the message.
    """

    fail: Callable[[str], PubsubError]
    """Returns the error to raise for a message."""

    def hex(self, place: str, value: object) -> bytes:
        """Return the bytes of a text of 0x and hex digits."""
        if not isinstance(value, str) or not value.startswith("0x"):
            raise self._not(place, value, "a 0x string")
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            raise self.fail(f"{place} is not hex") from None

    def hash(self, place: str, value: object) -> Hash:
        """Return the 32 bytes of a text of 0x and hex digits."""
        raw = self.hex(place, value)
        if len(raw) != 32:
            raise self.fail(f"{place} has {counted(len(raw), 'byte')}, not 32")
        return Hash(raw)

    def number(self, place: str, value: object) -> int:
        """Return a number of 32 bits.

        It can be a JSON number, a text of decimal digits with commas, or a text of 0x and hex
        digits.
        """
        number = value
        if isinstance(value, str) and value.isascii():
            text = value.replace(",", "")
            try:
                if text.startswith("0x"):
                    number = int(text, 16)
                elif text.isdecimal():
                    number = int(text)
            except ValueError:
                number = None
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= U32_MAX:
            raise self._not(place, value, "a number of 32 bits")
        return number

    def list(self, place: str, value: object) -> list[object]:
        """Return a list."""
        if not isinstance(value, list):
            raise self._not(place, value, "a list")
        return value

    def mapping(self, place: str, value: object) -> Mapping[str, object]:
        """Return a JSON object."""
        if not isinstance(value, dict):
            raise self._not(place, value, "an object")
        return value

    def header(self, place: str, value: object) -> RawHeader:
        """Return a header from an answer of a node."""
        data = self.mapping(f"{place}: the header", value)
        digest = data.get("digest")
        logs = digest.get("logs") if isinstance(digest, dict) else None
        if not isinstance(logs, list):
            raise self.fail(
                f"{place}: the header has no digest.logs, without which its hash is not known"
            )
        number = self.number(f"{place}: number", data.get("number"))
        parent = self.hash(f"{place}: parentHash", data.get("parentHash"))
        state_root = self.hash(f"{place}: stateRoot", data.get("stateRoot"))
        extrinsics_root = self.hash(f"{place}: extrinsicsRoot", data.get("extrinsicsRoot"))
        items = [self.hex(f"{place}: digest.logs[{index}]", log) for index, log in enumerate(logs)]
        encoded = b"".join(
            (
                parent,
                encode_compact(number),
                state_root,
                extrinsics_root,
                encode_compact(len(items)),
                *items,
            )
        )
        return RawHeader(
            number,
            blake2_256(encoded),
            parent,
            state_root=state_root,
            extrinsics_root=extrinsics_root,
            encoded=encoded,
        )

    def downward(self, place: str, value: object) -> tuple[InboundDownwardMessage, ...]:
        """Return the downward messages of an inherent, empty if there is no value."""
        messages = enumerate(self.list(place, [] if value is None else value))
        return tuple(
            InboundDownwardMessage(*self._message(f"{place}[{index}]", message, "msg"))
            for index, message in messages
        )

    def horizontal(self, place: str, value: object) -> Horizontal:
        """Return the horizontal messages of an inherent, empty if there is no value."""
        by_sender: dict[int, tuple[InboundHrmpMessage, ...]] = {}
        for sender, sent in self.mapping(place, {} if value is None else value).items():
            number = self.number(f"{place}: sender", sender)
            sender_place = f"{place}.{sender}"
            messages = (
                self._message(f"{sender_place}[{index}]", message, "data")
                for index, message in enumerate(self.list(sender_place, sent))
            )
            by_sender[number] = tuple(InboundHrmpMessage(*message) for message in messages)
        return tuple((ParaId(sender), by_sender[sender]) for sender in sorted(by_sender))

    def _message(self, place: str, value: object, body: str) -> tuple[RelayBlockNumber, bytes]:
        """Return the block number and the body of a message. `body` is the name of its field."""
        named = {plain_name(name): field for name, field in self.mapping(place, value).items()}
        sent_at = self.number(f"{place}.sentAt", named.get("sentat"))
        return RelayBlockNumber(sent_at), self.hex(f"{place}.{body}", named.get(body))

    def _not(self, place: str, value: object, wanted: str) -> PubsubError:
        """Return the error for a value that is not of the wanted kind."""
        return self.fail(f"{place} is {str(value)[:40]!r}, not {wanted}")


def plain_name(name: object) -> str:
    """Return a name in lower case without underscores, so that camel and snake case are equal."""
    return str(name).replace("_", "").lower()

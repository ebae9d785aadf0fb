"""Values in the JSON of nodes and exports, each checked: hex, numbers, headers, messages. Errors name the place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import U32_MAX, Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.message_chains import InboundDownwardMessage, InboundHrmpMessage

Horizontal = tuple[tuple[ParaId, tuple[InboundHrmpMessage, ...]], ...]
"""Messages by sender, ascending."""


@dataclass(frozen=True, slots=True)
class RawHeader:
    """A header; `encoded` is its SCALE, digest included, and `hash` is computed from it."""

    number: int
    hash: Hash
    parent: Hash
    state_root: Hash
    extrinsics_root: Hash
    encoded: bytes


@dataclass(frozen=True, slots=True)
class Values:
    """Reads values; each method takes the value's place in words and raises what `fail` makes of an error."""

    fail: Callable[[str], PubsubError]

    def hex(self, place: str, value: object) -> bytes:
        """The bytes of a 0x string."""
        if not isinstance(value, str) or not value.startswith("0x"):
            raise self._not(place, value, "a 0x string")
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            raise self.fail(f"{place} is not hex") from None

    def hash(self, place: str, value: object) -> Hash:
        """A hash as a 0x string."""
        raw = self.hex(place, value)
        if len(raw) != 32:
            raise self.fail(f"{place} has {len(raw)} bytes, not 32")
        return Hash(raw)

    def number(self, place: str, value: object) -> int:
        """A number of 32 bits: in JSON's digits, or as text in digits with commas, or behind 0x."""
        found = value
        if isinstance(value, str) and value.isascii():
            text = value.replace(",", "")
            try:
                found = int(text, 16) if text.startswith("0x") else int(text) if text.isdecimal() else value
            except ValueError:
                found = None
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= U32_MAX:
            raise self._not(place, value, "a number of 32 bits")
        return found

    def list(self, place: str, value: object) -> list[object]:
        """A list."""
        if not isinstance(value, list):
            raise self._not(place, value, "a list")
        return value

    def mapping(self, place: str, value: object) -> Mapping[str, object]:
        """An object."""
        if not isinstance(value, dict):
            raise self._not(place, value, "an object")
        return value

    def header(self, place: str, value: object) -> RawHeader:
        """A header as nodes give it."""
        data = self.mapping(f"{place}: the header", value)
        digest = data.get("digest")
        logs = digest.get("logs") if isinstance(digest, dict) else None
        if not isinstance(logs, list):
            raise self.fail(f"{place}: the header has no digest.logs, without which its hash is not known")
        number = self.number(f"{place}: number", data.get("number"))
        parent, root, body = (
            self.hash(f"{place}: {name}", data.get(name)) for name in ("parentHash", "stateRoot", "extrinsicsRoot")
        )
        items = b"".join(self.hex(f"{place}: digest.logs[{at}]", log) for at, log in enumerate(logs))
        encoded = parent + encode_compact(number) + root + body + encode_compact(len(logs)) + items
        return RawHeader(number, blake2_256(encoded), parent, root, body, encoded)

    def downward(self, place: str, value: object) -> tuple[InboundDownwardMessage, ...]:
        """Downward messages of an inherent, empty where there is no value."""
        messages = enumerate(self.list(place, [] if value is None else value))
        return tuple(InboundDownwardMessage(*self._message(f"{place}[{at}]", each, "msg")) for at, each in messages)

    def horizontal(self, place: str, value: object) -> Horizontal:
        """Horizontal messages of an inherent, empty where there is no value."""
        out: dict[int, tuple[InboundHrmpMessage, ...]] = {}
        for sender, sent in self.mapping(place, {} if value is None else value).items():
            number, at = self.number(f"{place}: sender", sender), f"{place}.{sender}"
            messages = (self._message(f"{at}[{n}]", each, "data") for n, each in enumerate(self.list(at, sent)))
            out[number] = tuple(InboundHrmpMessage(*message) for message in messages)
        return tuple((ParaId(sender), out[sender]) for sender in sorted(out))

    def _message(self, place: str, value: object, body: str) -> tuple[RelayBlockNumber, bytes]:
        named = {plain_name(name): each for name, each in self.mapping(place, value).items()}
        at = self.number(f"{place}.sentAt", named.get("sentat"))
        return RelayBlockNumber(at), self.hex(f"{place}.{body}", named.get(body))

    def _not(self, place: str, value: object, wanted: str) -> PubsubError:
        return self.fail(f"{place} is {str(value)[:40]!r}, not {wanted}")


def plain_name(name: object) -> str:
    """A name without the marks by which camel and snake case differ."""
    return str(name).replace("_", "").lower()

"""A node's answers as typed values. All answers are checked here.

Fields of answers are in camel case. Unknown fields are ignored.
"""

import reprlib
from typing import Annotated, Final, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    TypeAdapter,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.files.shown import safe
from pubsub_emulator.primitives import types
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header, read_digest_item
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.scale import Reader, encode_compact
from pubsub_emulator.primitives.types import U32_MAX, U64_MAX, ParaId

T = TypeVar("T")
_SHORT: Final = reprlib.Repr()
"""Shows the beginning of a value. The whole text of a block would be as large as the block."""
_SHORT.maxstring = 200
_SHORT.maxother = 200

MOST_TEXT: Final = 10_000
"""The maximum length of a text in an answer, in characters. Bytes in hexadecimal are not texts."""
MOST_BLOCK: Final = 32 * 1_048_576
"""The maximum size of a block's extrinsics in bytes.

Relay chains allow 5 MiB, and parachains 10 MiB, which is the size of a PoV.
"""
MOST_EXTRINSICS: Final = 65_536
"""The maximum number of extrinsics of a block.

A signed extrinsic weighs about 0.1 ms, so a block of two seconds has at most a third as many.
"""
_SHOWN: Final = 80
"""The maximum number of characters of an answer that an error repeats."""


def _bytes(value: object) -> bytes:
    if not isinstance(value, str) or not value.startswith("0x"):
        raise ValueError("bytes are a string of 0x and digits")
    return unhex(value)


def _height(value: object) -> int:
    if not isinstance(value, str) or not value.startswith("0x"):
        raise ValueError("a height is a string of 0x and digits")
    return int(value, 16)


def _within_a_block(listed: object) -> object:
    """Refuse extrinsics that no block can have, before their digits are converted."""
    if not isinstance(listed, list):
        return listed
    if len(listed) > MOST_EXTRINSICS:
        raise ValueError(f"a block has at most {MOST_EXTRINSICS:,} extrinsics")
    size = sum(len(extrinsic) for extrinsic in listed if isinstance(extrinsic, str)) // 2
    if size > MOST_BLOCK:
        raise ValueError(f"a block's extrinsics have at most {MOST_BLOCK:,} bytes")
    return listed


Text = Annotated[str, Field(strict=True, max_length=MOST_TEXT)]
Bytes = Annotated[bytes, BeforeValidator(_bytes)]
Hash = Annotated[Bytes, Field(min_length=32, max_length=32)]
Height = Annotated[int, BeforeValidator(_height), Field(ge=0, le=U32_MAX)]
Count = Annotated[int, Field(strict=True, ge=0, le=U64_MAX)]
Para = Annotated[ParaId, Field(strict=True, ge=0, le=U32_MAX)]
Index = Annotated[int, Field(strict=True, ge=0, le=U32_MAX)]


class Answer(BaseModel):
    """The base class of objects in answers."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, arbitrary_types_allowed=True)


class Digest(Answer):
    """The digest of a header."""

    logs: tuple[Bytes, ...]
    """The SCALE bytes of the items."""


class Head(Answer):
    """The header of a block."""

    number: Height
    parent_hash: Hash
    state_root: Hash
    extrinsics_root: Hash
    digest: Digest

    def hash(self) -> types.Hash:
        """Compute the block hash from the fields."""
        logs = self.digest.logs
        parts = (
            self.parent_hash,
            encode_compact(self.number),
            self.state_root,
            self.extrinsics_root,
        )
        return blake2_256(b"".join((*parts, encode_compact(len(logs)), *logs)))

    def header(self) -> Header:
        """Return the header as this project's type.

        Raises `ScaleError` if the digest has an item of an unknown kind.
        """
        items = tuple(read_digest_item(Reader(log)) for log in self.digest.logs)
        return Header(
            types.Hash(self.parent_hash),
            self.number,
            types.Hash(self.state_root),
            types.Hash(self.extrinsics_root),
            items,
        )

    def aura_slot(self) -> int | None:
        """Return the slot in the Aura pre-runtime digest.

        Returns `None` if the digest has no such item, or an item of an unknown kind.
        """
        try:
            return self.header().aura_slot()
        except ScaleError:
            return None


class Proof(Answer):
    """A read proof."""

    proof: tuple[Bytes, ...]


class StorageChangeSet(Answer):
    """The values of some keys at a block."""

    changes: tuple[tuple[Bytes, Bytes | None], ...]


class MethodNames(Answer):
    """The methods that a node supports."""

    methods: tuple[Text, ...]


class Extrinsics(Answer):
    """The extrinsics of a block."""

    extrinsics: Annotated[tuple[Bytes, ...], BeforeValidator(_within_a_block)]
    """The SCALE bytes of each extrinsic, with their length in front."""


class SignedBlock(Answer):
    """A block as `chain_getBlock` returns it."""

    block: Extrinsics


class Version(Answer):
    """The version of a runtime."""

    spec_name: Text
    spec_version: Index
    transaction_version: Index = 0


BLOCK: Final = TypeAdapter(SignedBlock)
BYTES: Final[TypeAdapter[bytes]] = TypeAdapter(Bytes)
FLAG: Final[TypeAdapter[bool]] = TypeAdapter(StrictBool)
HASH: Final[TypeAdapter[bytes]] = TypeAdapter(Hash)
HEAD: Final = TypeAdapter(Head)
KEYS: Final[TypeAdapter[list[bytes]]] = TypeAdapter(list[Bytes])
MAYBE_BYTES: Final[TypeAdapter[bytes | None]] = TypeAdapter(Bytes | None)
MAYBE_HASH: Final[TypeAdapter[bytes | None]] = TypeAdapter(Hash | None)
MAYBE_HEAD: Final[TypeAdapter[Head | None]] = TypeAdapter(Head | None)
METHODS: Final = TypeAdapter(MethodNames)
NUMBER: Final[TypeAdapter[int]] = TypeAdapter(Count)
PROOF: Final = TypeAdapter(Proof)
TEXT: Final[TypeAdapter[str]] = TypeAdapter(Text)
VERSION: Final = TypeAdapter(Version)


def read(kind: TypeAdapter[T], answer: object, place: str) -> T:
    """Check an answer and convert it to the type of `kind`.

    `place` names the node and the method in errors. Raises `BadAnswer`.
    """
    try:
        return kind.validate_python(answer)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = "".join(f".{part}" for part in fault["loc"])
        value = _SHORT.repr(fault["input"])
        if len(value) > _SHOWN:
            value = f"{value[:_SHOWN]}…"
        problem = "an object is expected" if fault["type"] == "model_type" else fault["msg"]
        raise BadAnswer(safe(f"{place}{field}: {problem}; the node answered {value}")) from None

"""A chain's names and encodings where they differ from this project's, read from a TOML file."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pubsub_emulator.files.settings import StrictModel, read
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.types import U32_MAX

Para = Annotated[int, Field(ge=0, le=U32_MAX)]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Hex = Annotated[str, AfterValidator(lambda text: unhex(text) and text)]


class PublishCall(StrictModel):
    """The call of a parachain that publishes. Its argument is a list of key, value and ttl."""

    by: Literal["call", "message"] = "call"
    """`call`, or `message` to publish by XCM through the call of `message`."""
    pallet: Name = "Publisher"
    call: Name = "publish"
    argument: Name = "entries"


class Message(StrictModel):
    """The call of a parachain that sends an XCM message to the relay chain unchanged."""

    pallet: Name = "ParachainSystem"
    call: Name = "sudo_send_upward_message"
    argument: Name = "message"
    others: dict[Name, Hex] = Field(default_factory=dict)
    """Further arguments by name, as SCALE in hexadecimal digits."""
    root: bool = True
    """Whether the call is made through the parachain's `Sudo`."""
    wrapped: bool = True
    """Whether the argument is `Vec<u8>` instead of `VersionedXcm`."""


class Mapping(StrictModel):
    """A chain's own names. The defaults are this project's.

    Tuple fields are not strict, because TOML has lists.
    """

    pallet: Name = "Broadcaster"
    """The relay chain's pallet."""
    subscriber_pallet: Name = "Subscriber"
    """A parachain's pallet."""
    names: dict[Name, Name] = Field(default_factory=dict)
    """The chain's names of calls, arguments, storage items, events, fields, errors and constants,
    by this project's names.
    """
    child_prefix: Annotated[str, Field(max_length=64)] = "pubsub"
    """The beginning of a child trie's key, which the para id as u32 follows (PS-1)."""
    entry: Annotated[tuple[Literal["value", "ttl", "when_inserted"], ...], Field(strict=False)] = (
        "value",
        "ttl",
        "when_inserted",
    )
    """The order of an entry's fields."""
    publish: PublishCall = PublishCall()
    """The call that publishes."""
    message: Message = Message()
    """The call that sends an upward message."""
    instruction: Annotated[int, Field(ge=0, le=255)] = 52
    """The number of `Publish` in XCM v5 (PS-20)."""
    most_publishes: Annotated[int, Field(ge=1, le=250)] = 64
    """The maximum number of instructions of a message that the barrier admits (PS-22)."""
    publisher: Para = 2000
    """A parachain that must register to publish. `manager` signs for it. Its entries are removed.
    """
    system: Para = 1000
    """A system parachain, which publishes without registration."""
    subscriber: Para = 2000
    """A parachain that subscribes to keys of `system`."""
    subscribed: Annotated[tuple[Hex, ...], Field(strict=False)] = ()
    """Keys that `subscriber` subscribes to (PS-30)."""
    upgrade: Annotated[str, Field(max_length=4096)] = ""
    """A file with another runtime for `subscriber`, which the test installs (PS-33)."""
    manager: Name = "Alice"
    """The development account that manages `publisher` and is root through each chain's `Sudo`."""
    stranger: Name = "Bob"
    """A development account that does not manage a parachain."""
    patience: Annotated[float, Field(gt=0, le=3600)] = 30
    """The maximum time until an extrinsic is in a block, in seconds."""
    delay: Annotated[int, Field(ge=1, le=1000)] = 8
    """The maximum number of relay blocks from a parachain's call to its effect."""
    most_calls: Annotated[int, Field(ge=1, le=10_000)] = 24
    """The maximum number of calls that a test may make to reach one of the chain's limits."""
    offboard_blocks: Annotated[int, Field(ge=0, le=100_000)] = 0
    """The number of relay blocks that `Registrar.deregister` may take until `publisher` is gone. 0
    skips that test (PS-11).
    """

    def name(self, ours: str) -> str:
        """Return the chain's name for one of our names."""
        return self.names.get(ours, ours)


def read_mapping(path: Path | None) -> Mapping:
    """Return the mapping in a file, or this project's own names. Raises `SettingsError`."""
    return Mapping() if path is None else read(path, Mapping)

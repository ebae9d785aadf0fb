"""The names and encodings of a chain, where they differ from this project's, in a TOML file."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pubsub_emulator.emulator.settings import StrictModel, read
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.types import U32_MAX

Para = Annotated[int, Field(ge=0, le=U32_MAX)]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Hex = Annotated[str, AfterValidator(lambda text: unhex(text) and text)]


class Publish(StrictModel):
    """The call of a parachain that publishes; its argument is a list of key, value, ttl."""

    by: Literal["call", "message"] = "call"
    """`message`: publish by XCM, through the call of `message`."""
    pallet: Name = "Publisher"
    call: Name = "publish"
    argument: Name = "entries"


class Message(StrictModel):
    """The call of a parachain that sends an XCM to the relay chain as it is; other arguments are SCALE in hex."""

    pallet: Name = "ParachainSystem"
    call: Name = "sudo_send_upward_message"
    argument: Name = "message"
    others: dict[Name, Hex] = Field(default_factory=dict)
    root: bool = True
    """Whether it is called through the parachain's `Sudo`."""
    wrapped: bool = True
    """Whether the argument is `Vec<u8>`, and not `VersionedXcm` itself."""


class Mapping(StrictModel):
    """A chain's own names; whatever is not given is called as here."""

    pallet: Name = "Broadcaster"
    """The relay chain's pallet."""
    subscriber_pallet: Name = "Subscriber"
    """A parachain's pallet."""
    names: dict[Name, Name] = Field(default_factory=dict)
    """The chain's names of calls, arguments, items, events, their fields, errors and constants, by those here."""
    child_prefix: Annotated[str, Field(max_length=64)] = "pubsub"
    """The beginning of a child trie's key; the para id as u32 follows (PS-1)."""
    entry: tuple[Literal["value", "ttl", "when_inserted"], ...] = ("value", "ttl", "when_inserted")
    """The order of an entry's fields."""
    publish: Publish = Publish()
    """The call that publishes."""
    message: Message = Message()
    """The call that sends an upward message."""
    instruction: Annotated[int, Field(ge=0, le=255)] = 52
    """The number of `Publish` in XCM v5 (PS-20)."""
    most_publishes: Annotated[int, Field(ge=1, le=250)] = 64
    """Instructions of a message that the barrier admits (PS-22)."""
    publisher: Para = 2000
    """A parachain that must register, and whose manager signs; its entries are removed."""
    system: Para = 1000
    """A system parachain, which publishes without registration."""
    subscriber: Para = 2000
    """A parachain that subscribes to keys of `system`."""
    subscribed: tuple[Hex, ...] = ()
    """Such keys (PS-30)."""
    upgrade: Annotated[str, Field(max_length=4096)] = ""
    """A file with another runtime of `subscriber`, which is installed (PS-33)."""
    manager: Name = "Alice"
    """The development account that manages `publisher` and is root by each chain's `Sudo`."""
    stranger: Name = "Bob"
    """A development account that manages nothing."""
    patience: Annotated[float, Field(gt=0, le=3600)] = 30
    """Seconds that an extrinsic may take."""
    delay: Annotated[int, Field(ge=1, le=1000)] = 8
    """Relay blocks from a parachain's call to its effect, at most."""
    most_calls: Annotated[int, Field(ge=1, le=10_000)] = 24
    """Calls that may be spent on one limit."""
    offboard_blocks: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Relay blocks within which `publisher` is gone after `Registrar.deregister`; 0: do not off-board it."""

    def name(self, ours: str) -> str:
        """The chain's name of something."""
        return self.names.get(ours, ours)


def read_mapping(path: Path | None) -> Mapping:
    """The mapping in a file, or this project's own names. Raises `SettingsError`."""
    return Mapping() if path is None else read(path, Mapping)

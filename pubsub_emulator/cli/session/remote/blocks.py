"""Relay blocks as a node tells them: events, candidates that were judged, deliveries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pubsub_emulator.cli.blocks import ttl_words
from pubsub_emulator.cli.pages import Line, printable
from pubsub_emulator.cli.session.command import CommandError
from pubsub_emulator.cli.session.remote.connection import RELAY, Remote
from pubsub_emulator.cli.session.session import number
from pubsub_emulator.cli.session.stepping import block_line
from pubsub_emulator.client.node import DecodedEvent
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.pubsub import Infinite, TimedOut, TtlState, ValidFor

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """A relay block and what was built for it."""

    number: int
    candidates: Sequence[Json]
    deliveries: Sequence[Json]

    @property
    def refused(self) -> list[Json]:
        """The candidates that were refused."""
        return [each for each in self.candidates if each["status"] == "rejected"]


def block_at(remote: Remote, height: int, para: int | None = None) -> Told:
    """A relay block; of one parachain, or of all. Raises `CommandError` where the node does not keep it."""
    judged = remote.ask("pubsub_candidates", para, height)
    if judged is None:
        raise CommandError(f"the node keeps no relay block {height}; the newest one is {remote.number}")
    return Told(height, judged, remote.ask("pubsub_deliveries", para, height))


def height_of(remote: Remote, text: str | None) -> int:
    """The height named, or the newest one. Raises `CommandError`."""
    return remote.number if text is None else number(text, "BLOCK is the height of a relay block")


def events_of(remote: Remote, chain: str, block: str) -> list[DecodedEvent]:
    """The events of a block of a chain, by the chain's own metadata."""
    found: list[DecodedEvent] = remote.run(remote.node(chain).events(unhex(block)))
    return found


def relay_events(remote: Remote, height: int) -> list[DecodedEvent]:
    """The events of a relay block. Raises `CommandError` where the node does not keep it."""
    name = remote.ask("chain_getBlockHash", height)
    if name is None:
        raise CommandError(f"the node keeps no relay block {height}; the newest one is {remote.number}")
    return events_of(remote, RELAY, name)


def line_of(told: Told, events: Sequence[DecodedEvent]) -> Line:
    """A relay block in one line."""

    def count(name: str) -> int:
        return sum(each.pallet == "Broadcaster" and each.name == name for each in events)

    return block_line(
        told.number,
        valid=len(told.candidates) - len(told.refused),
        verdicts=[each["verdict"] for each in told.refused],
        published=count("DataPublished"),
        expired=count("KeyExpired"),
        delivered=len(told.deliveries),
        removed=sum(each["value"] is None for each in told.deliveries),
    )


def delivery_row(remote: Remote, each: Json) -> tuple[str | int, ...]:
    """A delivery as `deliveries` shows it."""
    return (
        each["includedAt"],
        str(each["para"]),
        each["number"],
        str(each["publisher"]),
        remote.key_name(unhex(each["key"])),
        "removed" if each["value"] is None else printable(unhex(each["value"])),
        "" if each["ttlState"] is None else ttl_words(_ttl_state(each["ttlState"])),
    )


def _ttl_state(found: Any) -> TtlState:
    if isinstance(found, Mapping):
        return ValidFor(found["ValidFor"])
    return Infinite() if found == "Infinite" else TimedOut()


def refusal_row(remote: Remote, each: Json) -> tuple[str | int, ...]:
    """A refused candidate as `verdicts` shows it."""
    evidence = remote.ask("pubsub_candidate", each["hash"])["evidence"]
    why = "; ".join(str(offence["detail"]) for offence in evidence)
    return each["includedAt"], str(each["para"]), each["number"], each["verdict"], each["strategy"] or "", why

"""The report of a failing test: each chain's last block with its ledger, and its state changes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Final

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.network.records import BlockRecord, CheckpointRecord, Observer
from pubsub_emulator.emulator.runtimes import relay_runtime
from pubsub_emulator.emulator.state_diff import child_name, key_name
from pubsub_emulator.primitives.hashing import twox_128
from pubsub_emulator.primitives.hexadecimal import shortened
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.framework.system import EVENTS
from pubsub_emulator.runtime.pallet_subscriber.apply import Delivery
from pubsub_emulator.runtime.parachain.ledger import BlockLedger, PublisherLedger

_MOST_LINES: Final = 20
"""The maximum number of lines with deliveries, events or keys. If there are more, their number
follows."""

_MOST_CHAINS: Final = 8
"""The maximum number of parachains in the report."""
_MOST_BYTES: Final = 40
"""The maximum number of bytes of a value that are shown."""

_SYSTEM: Final = twox_128(b"System")
"""The prefix of pallet System, whose rows change in every block and are not shown."""


@dataclass(slots=True)
class LastBlocks(Observer):
    """An observer that stores the last blocks of each chain and the states around them."""

    network: Network
    records: dict[ParaId, BlockRecord] = field(default_factory=dict)
    states: dict[ParaId, tuple[State, State]] = field(default_factory=dict)
    """The states before and after the newest valid block."""
    numbers: dict[ParaId, int] = field(default_factory=dict)
    """The number of the newest valid block."""

    def checkpoint(self, record: CheckpointRecord) -> None:
        """Store the first state of a chain."""
        self.states.setdefault(record.chain, (record.state, record.state))

    def candidate(self, record: BlockRecord) -> None:
        """Store a candidate and, if it is valid, its state."""
        self.records[record.chain] = record
        if record.outcome is not None:
            self.states[record.chain] = (self.states[record.chain][1], record.outcome.state)
            self.numbers[record.chain] = record.candidate.header.number


class RunningNetworks:
    """The networks of the running test by name. A newer network replaces one of the same name."""

    __slots__ = ("_handed",)

    def __init__(self) -> None:
        self._handed: dict[str, LastBlocks] = {}

    def hand_out(self, name: str, network: Network) -> None:
        """Record the blocks of a network from now on."""
        last = LastBlocks(network)
        network.observe(last, past=False)
        self._handed[name] = last

    def take_back(self, network: Network) -> None:
        """Forget a network that was only used to build a base for others."""
        self._handed = {
            name: last for name, last in self._handed.items() if last.network is not network
        }

    def clear(self) -> None:
        """Forget all networks after a test."""
        self._handed.clear()

    def sections(self) -> Iterator[tuple[str, str]]:
        """Yield titles and texts for the report of a failed test."""
        for name, last in self._handed.items():
            if last.records:
                yield f"pubsub {name}: last blocks", _section(_blocks, last)
                yield f"pubsub {name}: state diff", _section(_changes, last)


def _section(lines: Callable[[LastBlocks], Iterator[str]], last: LastBlocks) -> str:
    """Return the text of a section, or the error if the test has broken the network."""
    try:
        return "\n".join(lines(last))
    except Exception as error:  # noqa: BLE001  # a broken network can raise any exception
        return f"cannot be shown: {type(error).__name__}: {error}"


def _blocks(last: LastBlocks) -> Iterator[str]:
    """Yield the newest relay block and each parachain's newest candidate as lines."""
    header = last.network.relay.header
    yield f"relay block {header.number}, state root 0x{header.state_root.hex()}"
    events = relay_runtime().decode_records(last.network.relay.state.top.get(EVENTS) or b"\x00")
    yield from _some(_event(record.event) for record in events)
    newest = sorted(last.records.values(), key=lambda record: (-record.included_at, record.chain))
    for record in newest[:_MOST_CHAINS]:
        yield from _block(record)
    if len(newest) > _MOST_CHAINS:
        yield f"… and {len(newest) - _MOST_CHAINS} more parachains"


def _block(record: BlockRecord) -> Iterator[str]:
    """Yield a candidate with its verdict, ledger and deliveries as lines."""
    inherent = record.candidate.inherent
    verdict = "valid" if record.refusal is None else "REFUSED"
    cheat = f", by the cheat {record.strategy}" if record.strategy is not None else ""
    yield (
        f"parachain {record.chain} block {record.candidate.header.number}, in relay block"
        f" {record.included_at} on {inherent.relay_parent_number}: {verdict}{cheat}"
    )
    if record.refusal is not None:
        yield from (
            f"  {offence.verdict.value}: {offence.detail}" for offence in record.refusal.evidence
        )
    if record.outcome is not None:
        yield from _ledger_lines(record.outcome.ledger)
        yield from _some(_delivery(delivery) for delivery in record.outcome.deliveries)


def _ledger_lines(ledger: BlockLedger) -> Iterator[str]:
    """Yield a ledger as lines, with a table of publishers."""
    yield (
        f"  budget {ledger.budget:,}, used {ledger.used:,}, messages {ledger.messages_bytes:,}, "
        f"static keys {ledger.static_bytes:,}, maps {ledger.map_charges:,}"
    )
    yield (
        f"  proof {ledger.proof_bytes:,} in {ledger.proof_nodes:,} nodes, own state"
        f" {ledger.own_state_bytes:,} (of it cache {ledger.cache_state_bytes:,})"
    )
    if not ledger.publishers:
        return
    names = [column.name for column in fields(PublisherLedger)]
    rows = [names]
    for publisher in ledger.publishers:
        values = (getattr(publisher, name) for name in names)
        rows.append(list(map(_cell, values)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))


def _cell(value: object) -> str:
    """Return a figure as text, and a truth value as `yes` or `no`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _delivery(delivery: Delivery) -> str:
    content = (
        "removed" if delivery.value is None else f"{_short(delivery.value)}, {delivery.ttl_state}"
    )
    failed = ", the handler FAILED" if delivery.failed else ""
    return f"  delivered {delivery.publisher} 0x{delivery.key.hex()}: {content}{failed}"


def _event(event: Event) -> str:
    values = ((name, getattr(event, name)) for name, _ in event.CODECS)
    inner = ", ".join(
        f"{name}={_short(value) if isinstance(value, bytes) else value}" for name, value in values
    )
    return f"  {event.PALLET}::{type(event).__name__}({inner})"


def _changes(last: LastBlocks) -> Iterator[str]:
    """Yield the state changes of the newest blocks as lines."""
    relay = last.network.relay
    now = relay.header.number
    before = relay.block(now - 1)
    if before is not None:
        yield f"relay block {now - 1} → {now}"
        yield from _state_lines(before.state, relay.state)
    newest = sorted(last.numbers, key=lambda para: (-last.records[para].included_at, para))
    for para in newest[:_MOST_CHAINS]:
        number = last.numbers[para]
        yield f"parachain {para} block {number - 1} → {number}"
        yield from _state_lines(*last.states[para])


def _state_lines(before: State, after: State) -> Iterator[str]:
    """Yield the first keys with different values in two states.

    Keys of child tries are included. Keys of pallet System are left out.
    """

    def lines() -> Iterator[str]:
        for key, old, new in before.top.differences(after.top):
            if not key.startswith(_SYSTEM):
                yield f"  {key_name(key)}: {_short(old)} → {_short(new)}"
        for child in sorted({**before.children, **after.children}):
            old_entries = dict(before.child_entries(child))
            new_entries = dict(after.child_entries(child))
            for key in sorted({**old_entries, **new_entries}):
                if old_entries.get(key) != new_entries.get(key):
                    yield (
                        f"  {child_name(child)}, 0x{key.hex()}: {_short(old_entries.get(key))} →"
                        f" {_short(new_entries.get(key))}"
                    )

    if before.root() == after.root():
        yield "  nothing changed"
    yield from _some(lines())


def _short(value: bytes | None) -> str:
    return "nothing" if value is None else shortened(value, _MOST_BYTES)


def _some(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first lines, and the number of further ones."""
    further = 0
    for index, line in enumerate(lines):
        if index < _MOST_LINES:
            yield line
        else:
            further += 1
    if further:
        yield f"  … and {further} more"

"""Experiments: one workload, one subscriber, many blocks, and where their bytes went.

A workload fixes how many publishers there are, how many keys of each are subscribed and how many are not, and which
share of them is written anew in each relay block. The subscriber builds a block on every relay block with the honest
author; what the ledgers say is summed up. `sweep` varies one field of the workload and the cache policy.

    pov        what a block weighs: relay nodes in the proof without the static keys', and all that reading the
               parachain's own state adds to its storage proof
    charged    what the rules bill of the budget
    latency    relay blocks from a publish to its delivery
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median
from typing import Final

from collator.author import RelayBlock, author
from emulator.seeded import MILLION, Stream, secret
from primitives.ed25519 import public_key
from primitives.errors import PubsubError
from primitives.pubsub import PublishedEntry, derive_child_key, key_from_data
from primitives.storage_keys import dmq_mqc_head
from primitives.types import ParaId, PubsubKey, RelayBlockNumber, Slot
from runtime.pallet_subscriber.config import CachePolicy, RuntimeSpec
from runtime.parachain_system.block import InboundDownwardMessage, message_chain
from runtime.parachain_system.execute import BlockOutcome
from runtime.parachain_system.genesis import genesis
from runtime.parachain_system.static_keys import NO_MESSAGES
from runtime.storage import State, Storage

SUBSCRIBER: Final = ParaId(3000)
FIRST_PUBLISHER: Final = 2000


class UnknownParameter(PubsubError):
    """A field that a workload does not have."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Sizes in bytes, shares in millionths; `spread` blocks are measured after the first delivery of everything."""

    publishers: int = 1
    keys: int = 256
    """Subscribed keys of each publisher."""
    others: int = 0
    """Keys of each publisher that are not subscribed."""
    value_size: int = 64
    update_rate: int = 10_000
    """Share of the subscribed keys that changes in each relay block, at least one key unless zero."""
    other_update_rate: int = 0
    """The same, of those not subscribed."""
    spread: int = 8
    max_pov_size: int = 10 * 1_048_576
    message_bytes: int = 0
    """Size of the one downward message in each block, none if zero."""
    cache: CachePolicy = CachePolicy.SLOTS
    meter_cache_reads: bool = True
    seed: str = "experiment"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a workload cost; bytes are medians over the measured blocks."""

    workload: Workload
    catch_up_blocks: int
    pov: float
    relay_bytes: float
    own_state_bytes: float
    cache_state_bytes: float
    charged: float
    unused: float
    latency_median: float
    latency_max: int


def measure(workload: Workload) -> Measurement:
    """Run a workload: deliver everything once, then `spread` blocks of updates."""
    world = _World(workload)
    catch_up = 0
    while True:
        outcome = world.block()
        catch_up += 1
        if outcome.plan.cursor is None:
            break
    outcomes = []
    for number in range(workload.spread):
        world.update(number)
        outcomes.append(world.block())
    for _ in range(2 * catch_up):
        if not world.waiting:
            break
        world.block()
    relay = [outcome.ledger.proof_bytes - outcome.ledger.static_bytes for outcome in outcomes]
    own = [outcome.ledger.own_state_bytes for outcome in outcomes]
    return Measurement(
        workload,
        catch_up,
        pov=median(map(sum, zip(relay, own, strict=True))),
        relay_bytes=median(relay),
        own_state_bytes=median(own),
        cache_state_bytes=median(outcome.ledger.cache_state_bytes for outcome in outcomes),
        charged=median(outcome.ledger.used for outcome in outcomes),
        unused=median(outcome.ledger.unused for outcome in outcomes),
        latency_median=median(world.latencies) if world.latencies else 0,
        latency_max=max(world.latencies, default=0),
    )


def sweep(
    parameter: str,
    values: Sequence[int],
    policies: Sequence[CachePolicy] = tuple(CachePolicy),
    base: Workload | None = None,
    on_step: Callable[[Workload], None] | None = None,
) -> Iterator[Measurement]:
    """Measure `base` with one field at each of `values`, under each policy. Raises `UnknownParameter`."""
    numeric = [field.name for field in fields(Workload) if field.type in {int, "int"}]
    if parameter not in numeric:
        raise UnknownParameter(f"a workload has no {parameter!r}; there are {', '.join(numeric)}")
    for value in values:
        for policy in policies:
            workload = replace(base or Workload(), cache=policy, **{parameter: value})  # type: ignore[arg-type]  # an int field, see above
            if on_step is not None:
                on_step(workload)
            yield measure(workload)


class _World:
    """One relay state, one subscriber."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.waiting: dict[tuple[ParaId, PubsubKey], int] = {}
        self.latencies: list[int] = []
        self.number = 1
        self.inbox: tuple[InboundDownwardMessage, ...] = ()
        self.dmq_head = NO_MESSAGES
        paras = [ParaId(FIRST_PUBLISHER + i) for i in range(workload.publishers)]
        self.subscribed = {para: _keys(para, 0, workload.keys) for para in paras}
        self.unsubscribed = {para: _keys(para, workload.keys, workload.others) for para in paras}
        self.relay = State.from_entries(
            ((f"filler {i}".encode(), bytes(40)) for i in range(2000)),
            {
                derive_child_key(para): [
                    (key, self._entry(0).encode()) for key in self.subscribed[para] + self.unsubscribed[para]
                ]
                for para in paras
            },
        )
        self.seed = secret(workload.seed.encode(), "collator")
        spec = RuntimeSpec(
            SUBSCRIBER,
            {para: tuple(sorted(keys)) for para, keys in self.subscribed.items()},
            cache=workload.cache,
            max_pov_size=workload.max_pov_size,
            meter_cache_reads=workload.meter_cache_reads,
        )
        self.header, self.state = genesis(spec, (public_key(self.seed),))

    def _entry(self, version: int) -> PublishedEntry:
        value = version.to_bytes(4, "little").ljust(self.workload.value_size, b"\0")[: self.workload.value_size]
        return PublishedEntry(value, 0, RelayBlockNumber(self.number))

    def update(self, version: int) -> None:
        """One relay block: some entries are written anew."""
        self.number += 1
        relay = Storage(self.relay)
        for keys, rate, counted in (
            (self.subscribed, self.workload.update_rate, True),
            (self.unsubscribed, self.workload.other_update_rate, False),
        ):
            for para, mine in keys.items():
                for key in self._chosen(mine, rate, f"{version}/{para}/{counted}"):
                    relay.child_put(derive_child_key(para), key, self._entry(version + 1).encode())
                    if counted:
                        self.waiting.setdefault((para, key), self.number)
        self._send(relay)
        relay.commit()

    def _send(self, relay: Storage) -> None:
        size = self.workload.message_bytes
        self.inbox = (InboundDownwardMessage(RelayBlockNumber(self.number), bytes(size)),) if size else ()
        for message in self.inbox:
            self.dmq_head = message_chain(self.dmq_head, ((message.sent_at, message.msg),))
            relay.put(dmq_mqc_head(SUBSCRIBER), self.dmq_head)

    def _chosen(self, keys: list[PubsubKey], rate: int, label: str) -> list[PubsubKey]:
        if not keys or not rate:
            return []
        count = max(1, len(keys) * rate // MILLION)
        return [keys[at] for at in Stream(self.workload.seed.encode(), label).sample(len(keys), count)]

    def block(self) -> BlockOutcome:
        """One block of the subscriber on the newest relay block."""
        relay = RelayBlock(RelayBlockNumber(self.number), self.relay.fork())
        made = author(self.header, self.state, relay, self.inbox, (), Slot(self.header.number + 1), self.seed)
        self.inbox = ()
        self.header, self.state = made.candidate.header, made.outcome.state
        for delivery in made.outcome.deliveries:
            since = self.waiting.pop((delivery.publisher, delivery.key), None)
            if since is not None:
                self.latencies.append(self.number - since)
        if made.outcome.plan.cursor is not None:
            self.number += 1
        return made.outcome


def _keys(para: ParaId, first: int, count: int) -> list[PubsubKey]:
    return [key_from_data(f"{para}/{i}".encode()) for i in range(first, first + count)]

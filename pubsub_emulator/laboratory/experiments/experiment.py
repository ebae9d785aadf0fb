"""Experiments: the costs of many blocks of one subscriber under one workload.

pov        bytes of a block: the relay nodes in the proof without those of static keys, and
           everything that reading the parachain's own state adds to its storage proof
charged    the charges against the budget
latency    relay blocks from publication to delivery
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from statistics import median
from typing import Final, TypeVar

from pubsub_emulator.collator.author import RelayBlock, author
from pubsub_emulator.files.near import near_to
from pubsub_emulator.primitives.draws import MILLION, Draws, secret
from pubsub_emulator.primitives.ed25519 import public_key
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry, key_from_data
from pubsub_emulator.primitives.storage_keys import dmq_mqc_head
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework import message_chains
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy, RuntimeSpec
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.genesis import genesis
from pubsub_emulator.runtime.rules import SHIPPED, Rules

T = TypeVar("T")

SUBSCRIBER: Final = ParaId(3000)
FIRST_PUBLISHER: Final = 2000
_SHARE: Final = "_rate"
"""The end of the names of shares."""


class UnknownParameter(PubsubError):
    """A field that workloads do not have, or a value that the field does not accept."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload. Sizes are in bytes.

    Shares are stored as millionths. For people, they are numbers from 0 to 1.
    """

    publishers: int = 1
    keys: int = 256
    """The number of subscribed keys of each publisher."""
    others: int = 0
    """The number of other keys of each publisher."""
    value_size: int = 64
    """The size of each value."""
    update_rate: int = 10_000
    """The share of subscribed keys that change in each relay block. Unless it is zero, at least one
    key of each active publisher changes.
    """
    other_update_rate: int = 0
    """The same for keys that are not subscribed."""
    active_rate: int = MILLION
    """The share of publishers whose keys change in a relay block. At least one publisher is active.
    """
    equal_values: bool = False
    """Whether all entries written in one relay block are equal."""
    key_shape: str = "random"
    """The shape of the tries: `random`, as with hashes; `binary`, with only two children per
    branch; or `chain`, where each level branches off one key.
    """
    spread: int = 8
    """The number of blocks that are measured, after all entries were delivered once."""
    max_pov_size: int = 10 * 1_048_576
    """The size of the subscriber's largest block."""
    message_bytes: int = 0
    """The size of the downward message in each block, or 0 for no message."""
    cache: CachePolicy = CachePolicy.SLOTS
    """The subscriber's cache policy."""
    meter_cache_reads: bool = True
    """Whether reading cached nodes is charged."""
    seed: str = "experiment"

    def value_of(self, name: str) -> int | float | str:
        """Return a field in the form for people."""
        value: int | str = getattr(self, name)
        return value / MILLION if name.endswith(_SHARE) and isinstance(value, int) else value


@dataclass(frozen=True, slots=True)
class Measurement:
    """The costs of a workload.

    Costs are medians over the measured blocks, in bytes. Latencies are counted from the relay block
    with a publication to the one that includes the block with its delivery.
    """

    workload: Workload
    catch_up_blocks: int
    """The number of blocks until all entries were delivered once."""
    pov: float
    """The size of a block, as the module describes it."""
    relay_bytes: float
    """The size of relay nodes in the proof."""
    own_state_bytes: float
    """The bytes that reading the parachain's own state adds."""
    cache_state_bytes: float
    """The part of `own_state_bytes` for the cache."""
    charged: float
    """The charges against the budget."""
    budget: float
    unused: float
    """The unused budget."""
    stops: int
    """The number of blocks whose walk stopped at the budget."""
    unused_at_stop: float
    """The median of the unused budget over all blocks that stopped."""
    unused_at_stop_max: int
    """The maximum of the unused budget over all blocks that stopped."""
    latency_median: float
    latency_max: int
    ref_time: float
    """The reference time of a block in picoseconds (`BlockLedger.weight`)."""
    proof_size: float
    """The proof size of a block (`BlockLedger.weight`)."""
    undelivered: int
    """The number of changed keys that are not delivered after twice the time of the catch-up."""

    def row(self) -> dict[str, int | float | str]:
        """Return workload and figures as a row of a table."""
        fixed = {field.name: self.workload.value_of(field.name) for field in fields(Workload)}
        figures = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "workload"
        }
        return {**fixed, "cache": self.workload.cache.value, **figures}


def measure(workload: Workload, rules: Rules = SHIPPED) -> Measurement:
    """Run a workload under `rules` and return its costs.

    First, all entries are delivered once. Then `spread` blocks with updates are measured. At last,
    the remaining updates are delivered.
    """
    world = _World(workload, rules)
    catch_up = [world.block()]
    while catch_up[-1].plan.cursor is not None:
        catch_up.append(world.block())
    outcomes = [world.block(number) for number in range(workload.spread)]
    for _ in range(2 * len(catch_up) + 2):
        if world.waiting:
            world.block()
    relay = [outcome.ledger.proof_bytes - outcome.ledger.static_bytes for outcome in outcomes]
    own = [outcome.ledger.own_state_bytes for outcome in outcomes]
    unused_at_stops = [
        outcome.ledger.unused
        for outcome in (*catch_up, *outcomes)
        if outcome.plan.cursor is not None
    ]
    return Measurement(
        workload,
        len(catch_up),
        pov=median(map(sum, zip(relay, own, strict=True))),
        relay_bytes=median(relay),
        own_state_bytes=median(own),
        cache_state_bytes=median(outcome.ledger.cache_state_bytes for outcome in outcomes),
        charged=median(outcome.ledger.used for outcome in outcomes),
        budget=median(outcome.ledger.budget for outcome in outcomes),
        unused=median(outcome.ledger.unused for outcome in outcomes),
        stops=len(unused_at_stops),
        unused_at_stop=median(unused_at_stops) if unused_at_stops else 0,
        unused_at_stop_max=max(unused_at_stops, default=0),
        latency_median=median(world.latencies) if world.latencies else 0,
        latency_max=max(world.latencies, default=0),
        ref_time=median(outcome.ledger.ref_time for outcome in outcomes),
        proof_size=median(outcome.ledger.weight.proof_size for outcome in outcomes),
        undelivered=len(world.waiting),
    )


def sweep(  # noqa: PLR0917  # the fields of a sweep
    parameter: str,
    values: Sequence[int | str],
    policies: Sequence[CachePolicy] = tuple(CachePolicy),
    base: Workload | None = None,
    on_step: Callable[[Workload], None] | None = None,
    rules: Rules = SHIPPED,
) -> Iterator[Measurement]:
    """Measure `base` with each value of one field and with each policy.

    Raises `UnknownParameter`.
    """
    for value in values:
        at_value = with_field(base or Workload(), parameter, value)
        for policy in policies:
            workload = replace(at_value, cache=policy)
            if on_step is not None:
                on_step(workload)
            yield measure(workload, rules)


def with_field(workload: Workload, name: str, value: int | str) -> Workload:
    """Return the workload with one field set to a value, which may be text.

    Raises `UnknownParameter`.
    """
    known = [field.name for field in fields(Workload) if field.name != "cache"]
    if name not in known:
        listing = f"fields: {', '.join(known)}"
        raise UnknownParameter(f"unknown field {name!r}; {near_to(name, known, listing)}")
    old_value = getattr(workload, name)
    if name == "key_shape" and value not in _SHAPES:
        raise UnknownParameter(f"key_shape is one of {', '.join(_SHAPES)}, not {value!r}")
    if isinstance(old_value, str):
        return replace(workload, **{name: str(value)})  # type: ignore[arg-type]  # a field of text, as it was
    if name.endswith(_SHARE):
        return replace(workload, **{name: _millionths(name, str(value))})  # type: ignore[arg-type]  # an int, as it was
    text = str(value).replace("_", "").lower()
    if isinstance(old_value, bool):
        text = {"true": "1", "false": "0"}.get(text, text)
    minimum = {"publishers": 1, "keys": 1, "spread": 1, "max_pov_size": 1}.get(name, 0)
    if (
        not text.isdecimal()
        or int(text) < minimum
        or (isinstance(old_value, bool) and int(text) > 1)
    ):
        wanted = (
            "true or false" if isinstance(old_value, bool) else f"a number of at least {minimum}"
        )
        raise UnknownParameter(f"{name} is {wanted}, not {value!r}")
    return replace(workload, **{name: type(old_value)(int(text))})


def _millionths(name: str, text: str) -> int:
    """Return a share, written as a number from 0 to 1, in millionths."""
    try:
        share = Decimal(text)
    except InvalidOperation:
        share = Decimal(-1)
    if not 0 <= share <= 1:
        raise UnknownParameter(f"{name} is a share from 0 to 1, not {text!r}")
    return int((share * MILLION).to_integral_value())


class _World:
    """A relay state with published entries, and the subscriber."""

    def __init__(self, workload: Workload, rules: Rules) -> None:
        self.workload = workload
        self.rules = rules
        self.waiting: dict[tuple[ParaId, PubsubKey], int] = {}
        """Changed keys that are not delivered yet, with the relay block of their first change."""
        self.latencies: list[int] = []
        self.number = 1
        self.dmq_head = message_chains.ZERO_HEAD
        paras = [ParaId(FIRST_PUBLISHER + index) for index in range(workload.publishers)]
        self.subscribed = {para: self._keys(para, 0, workload.keys) for para in paras}
        self.unsubscribed = {
            para: self._keys(para, workload.keys, workload.others) for para in paras
        }
        children: dict[bytes, list[tuple[bytes, bytes]]] = {}
        for para in paras:
            keys = self.subscribed[para] + self.unsubscribed[para]
            child, placed = rules.placed(para, keys)
            entries = (self._entry(para, key, 0) for key in keys)
            children.setdefault(child, []).extend(zip(placed, entries, strict=True))
        # The other entries give the top trie some depth.
        self.relay = State.from_entries(
            ((f"filler {index}".encode(), bytes(40)) for index in range(2000)), children
        )
        self.seed = secret(workload.seed.encode(), "collator")
        spec = RuntimeSpec(
            SUBSCRIBER,
            {para: tuple(sorted(keys)) for para, keys in self.subscribed.items()},
            cache=workload.cache,
            max_pov_size=workload.max_pov_size,
            meter_cache_reads=workload.meter_cache_reads,
        ).ruled(rules)
        self.head = genesis(spec, (public_key(self.seed),), rules=rules)

    def _entry(self, para: ParaId, key: PubsubKey, version: int) -> bytes:
        """Return an entry whose value depends on the version.

        By default it also depends on the publisher and the key, because equal values would share
        nodes in the proof and in the parachain's own state.
        """
        size = self.workload.value_size
        if self.workload.equal_values:
            pattern = blake2_256(b"%d" % version)
        else:
            pattern = blake2_256(b"%d/%s/%d" % (para, key, version))
        value = (pattern * (size // len(pattern) + 1))[:size]
        entry = PublishedEntry(value, 0, RelayBlockNumber(self.number))
        return self.rules.to_stored(entry.encode())

    def _update(self, relay: Storage, version: int) -> None:
        """Write new values of some entries."""
        workload = self.workload
        # Each choice has its own random numbers, which its label determines.
        active = self._chosen(list(self.subscribed), workload.active_rate, f"{version}/active")
        for para in active:
            label = f"{version}/{para}/True"
            for key in self._chosen(self.subscribed[para], workload.update_rate, label):
                self._write(relay, para, key, version + 1)
                self.waiting.setdefault((para, key), self.number)
        for para in active:
            label = f"{version}/{para}/False"
            for key in self._chosen(self.unsubscribed[para], workload.other_update_rate, label):
                self._write(relay, para, key, version + 1)

    def _write(self, relay: Storage, para: ParaId, key: PubsubKey, version: int) -> None:
        """Store an entry of a publisher in the relay state."""
        child, (key_place,) = self.rules.placed(para, (key,))
        relay.child_put(child, key_place, self._entry(para, key, version))

    def _chosen(self, options: list[T], rate: int, label: str) -> list[T]:
        """Return a random share of the options, at least one unless `rate` is zero."""
        if not options or not rate:
            return []
        count = max(1, len(options) * rate // MILLION)
        return [
            options[index]
            for index in Draws(self.workload.seed.encode(), label).places(len(options), count)
        ]

    def block(self, version: int | None = None) -> BlockOutcome:
        """Build a relay block and the subscriber's block on it.

        With a version, the relay block changes some entries.
        """
        self.number += 1
        number = RelayBlockNumber(self.number)
        storage = Storage(self.relay)
        size = self.workload.message_bytes
        if version is not None:
            self._update(storage, version)
        messages = (message_chains.InboundDownwardMessage(number, bytes(size)),) if size else ()
        for message in messages:
            self.dmq_head = message_chains.message_chain(
                self.dmq_head, ((message.sent_at, message.msg),)
            )
            storage.put(dmq_mqc_head(SUBSCRIBER), self.dmq_head)
        storage.commit()
        relay = RelayBlock(number, self.relay.fork())
        slot = Slot(self.head.header.number + 1)
        authored = author(
            self.head, relay, message_chains.InboundMessages(messages), slot, self.seed
        )
        self.head = self.head.followed(authored.candidate.header, authored.outcome.state)
        for delivery in authored.outcome.deliveries:
            since = self.waiting.pop((delivery.publisher, delivery.key), None)
            if since is not None:
                # The next relay block includes the block with the delivery.
                self.latencies.append(self.number + 1 - since)
        return authored.outcome

    def _keys(self, para: ParaId, first: int, count: int) -> list[PubsubKey]:
        """Return `count` keys of a publisher from number `first` on, in the workload's shape."""
        make_key = _SHAPES[self.workload.key_shape]
        return [make_key(para, index) for index in range(first, first + count)]


def _random(para: ParaId, index: int) -> PubsubKey:
    """Return a key whose digits are as good as random."""
    return key_from_data(f"{para}/{index}".encode())


def _binary(para: ParaId, index: int) -> PubsubKey:
    """Return a key whose hexadecimal digits are only 0 and 1."""
    bits = f"{int.from_bytes(_random(para, index)):0256b}"
    return PubsubKey(bytes.fromhex(bits[:64]))


def _chain(para: ParaId, index: int) -> PubsubKey:
    """Return a key that branches off at level `index` of a path of 14 levels.

    After 14 keys, the next 14 branch off at the same levels with another nibble.
    """
    level = index % _LEVELS
    nibble = 1 + index // _LEVELS % 15
    digits = f"{'0' * level}{nibble:x}{_random(para, index).hex()}"
    return PubsubKey(bytes.fromhex(digits[:64]))


_LEVELS: Final = 14
"""The number of levels of a chain of keys."""
_SHAPES: Final = {"random": _random, "binary": _binary, "chain": _chain}
"""The functions that make keys, by shape."""

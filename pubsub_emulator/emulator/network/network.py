"""A network of relay chain, parachains and collators.

A step builds one relay block, in this order:

1. every parachain whose turn it is builds candidates on an existing relay parent (PS-31)
2. each candidate is judged; an invalid one changes nothing, and the next collator may try
   (PS-53, PS-79)
3. the relay chain builds its block: sessions, queues, valid candidates, their messages, calls,
   expiry
4. observers receive the relay block, then every candidate with its verdict

>>> network = Network.of(publishers=[1000], subscribers={2000: {1000: [key]}})
>>> network.publish(1000, key, b"value")
>>> network.step(3)[-1].deliveries(2000)
"""

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

from pubsub_emulator.collator.cheats import Situation
from pubsub_emulator.emulator.fork import Forks
from pubsub_emulator.emulator.network import arguments
from pubsub_emulator.emulator.network.block_time import relay_time
from pubsub_emulator.emulator.network.config import (
    NetworkConfig,
    ParachainConfig,
    with_forks,
    with_validators,
)
from pubsub_emulator.emulator.network.parachain import CollatorConfig, Parachain, make_collators
from pubsub_emulator.emulator.network.records import (
    AuthorityRecord,
    CheckpointRecord,
    Observer,
    RelayRecord,
)
from pubsub_emulator.emulator.network.round import ATTEMPTS, Round, Schedule, subscriptions
from pubsub_emulator.emulator.network.step import Snapshot, Step, unknown_parachain
from pubsub_emulator.emulator.relay.chain import Genesis, RelayChain
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.primitives.draws import secret
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import (
    AccountId,
    ParaBlockNumber,
    ParaId,
    PubsubKey,
    RelayBlockNumber,
)
from pubsub_emulator.runtime.accounts.endowed import ALICE
from pubsub_emulator.runtime.framework.dispatch import Call, CallInfo
from pubsub_emulator.runtime.framework.executive import Block, Extrinsic
from pubsub_emulator.runtime.framework.fork import Fork
from pubsub_emulator.runtime.framework.message_chains import OutboundHrmpMessage
from pubsub_emulator.runtime.framework.origin import Origin, Root, Signed
from pubsub_emulator.runtime.pallet_pubsub.config import Config as PubsubConfig
from pubsub_emulator.runtime.pallet_pubsub.config import TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.storage import RegisteredPublishers
from pubsub_emulator.runtime.pallet_subscriber.config import (
    CachePolicy,
    RuntimeSpec,
    merge_subscriptions,
)
from pubsub_emulator.runtime.parachain.governance import set_code, transact
from pubsub_emulator.runtime.relay.inclusion import CandidateRefused
from pubsub_emulator.runtime.rules import SHIPPED, Rules


class UnknownCall(PubsubError):
    """A call that the relay chain does not have, or that has other arguments."""


def _given(**given: object) -> dict[str, Any]:
    """Return the arguments that are not `None`.

    Raises `BadRequest` if one is not a positive integer.
    """
    for name, value in given.items():
        if value is not None and (
            not isinstance(value, int) or isinstance(value, bool) or value < 1
        ):
            arguments.refuse(f"{name} is a whole number of at least 1, not {value!r}")
    return {name: value for name, value in given.items() if value is not None}


class Network:
    """A relay chain with its parachains.

    Everything follows from configuration, seed and calls, so that the same calls build the same
    blocks (PS-90).
    """

    def __init__(self, config: NetworkConfig) -> None:
        """Build the network at genesis. Raises `PubsubError` if the configuration cannot work.

        If a parachain has a relay parent offset, the relay chain gets validators that seal its
        headers (UP-12).
        """
        config = with_validators(config)
        self.config = config
        self.parachains = {
            chain.spec.para_id: Parachain.start(
                chain.spec,
                make_collators(config.seed, chain.spec.para_id, chain.collators),
                chain.pace,
                fork=chain.fork,
                rules=config.rules,
            )
            for chain in sorted(config.parachains, key=lambda chain: chain.spec.para_id)
        }
        self.relay = RelayChain.start(
            config.relay,
            Genesis(
                {para: chain.header.encode() for para, chain in self.parachains.items()},
                {para: self.manager(para) for para in self.parachains},
                publishers=config.publishers,
                channels=config.channels,
                fork=config.fork,
            ),
        )
        self._observers: list[Observer] = []
        self._extrinsics: list[Extrinsic] = []
        """Calls for the next relay block."""
        self._turns: dict[ParaId, None] = {}
        """Parachains that build in the next step regardless of their pace. An ordered set."""
        self._offered: tuple[bytes, ...] = ()
        """Signed extrinsics for the next relay block."""
        self.ordered: dict[ParaId, RuntimeSpec] = {}
        """The newest runtime that an action sent to each parachain. It may not have arrived yet."""
        # In each turn, a parachain can skip to any collator and then needs a slot for each attempt.
        slots = max(
            (
                len(chain.collators) + ATTEMPTS * chain.pace.blocks
                for chain in self.parachains.values()
            ),
            default=1,
        )
        self._schedule = Schedule(slots, config.segment_length)

    @staticmethod
    def of(
        publishers: Iterable[int],
        subscribers: Mapping[int, Mapping[int, Iterable[PubsubKey]]],
        seed: str = "network",
        *,
        collators: Mapping[int, Iterable[Iterable[str]]] | None = None,
        cache: str = "slots",
        max_pov_size: int | None = None,
        reserve_minimum: bool = False,
        ttl_policy: str = "scan",
        max_value_length: int | None = None,
        max_stored_keys: int | None = None,
        fork: Fork | None = None,
        parachain_forks: Mapping[int, Fork] | None = None,
        relay_parent_offset: int = 0,
        rules: Rules = SHIPPED,
    ) -> "Network":
        """Return a small network. Raises `BadRequest`.

        `subscribers` are `{subscriber: {publisher: keys}}`. `collators` are the strategies of each
        collator of a parachain, for instance `{2000: [(), ("omit-node",)]}`. The arguments from
        `cache` to `max_stored_keys` are fields of a scenario, with sizes in bytes. Chains continue
        from `fork` and `parachain_forks`, if given. Blocks of all subscribers show
        `relay_parent_offset` descendants of their relay parent (UP-12). `rules` replace the shipped
        rules.
        """
        arguments.ensure_blocks(relay_parent_offset)
        subscribed = {}
        for subscriber, wanted in subscribers.items():
            declared = [(ParaId(publisher), list(keys)) for publisher, keys in wanted.items()]
            subscribed[ParaId(subscriber)] = merge_subscriptions(declared)
        ttls = arguments.member(TtlPolicy, ttl_policy, "ttl_policy")
        limits = _given(max_value_length=max_value_length, max_stored_keys=max_stored_keys)
        relay = RelayConfig(pubsub=PubsubConfig(ttl_policy=ttls, rules=rules, **limits))
        size = _given(max_pov_size=max_pov_size)
        policy = arguments.member(CachePolicy, cache, "cache")
        authors = {
            ParaId(para): tuple(CollatorConfig(tuple(names)) for names in strategies)
            for para, strategies in (collators or {}).items()
        }
        for para in authors.keys() - subscribed.keys():
            arguments.refuse(f"collators: {para} is not a subscriber of this network")
        publishing = tuple(ParaId(para) for para in publishers)
        chains = []
        for para, items in subscribed.items():
            spec = RuntimeSpec(
                para,
                items,
                cache=policy,
                reserve_minimum=reserve_minimum,
                relay_parent_offset=relay_parent_offset,
                rules=rules.digest,
                **size,
                **limits,
            )
            chains.append(
                ParachainConfig(spec, authors[para]) if para in authors else ParachainConfig(spec)
            )
        others = (para for para in publishing if para not in subscribed)
        chains += [
            ParachainConfig.publisher(RuntimeSpec(para, {}, rules=rules.digest, **limits))
            for para in others
        ]
        registered = tuple(para for para in publishing if not relay.pubsub.is_system(para))
        config = NetworkConfig(tuple(chains), relay, registered, seed=seed.encode())
        return Network(with_forks(config, Forks(fork, parachain_forks or {})))

    def __repr__(self) -> str:
        return (
            f"<Network at relay block {self.number}, parachains"
            f" {', '.join(map(str, self.parachains))}>"
        )

    # For users of the network

    @property
    def number(self) -> RelayBlockNumber:
        """Return the newest relay block's height."""
        return self.relay.number

    @property
    def rules(self) -> Rules:
        """Return the rules of the relay chain, which are those of its parachains as well."""
        return self.config.rules

    def parachain(self, para: int) -> Parachain:
        """Return a parachain by its id. Raises `UnknownParachain`."""
        chain = self.parachains.get(ParaId(para))
        if chain is None:
            raise unknown_parachain(para, self.parachains)
        return chain

    def publish(self, para: int, key: PubsubKey, value: bytes, ttl: int = 0) -> None:
        """Let a parachain publish a key with its next block.

        `ttl` is a lifetime in relay blocks, or 0 for an entry that does not expire. Raises
        `UnknownParachain`, `BadRequest`, and the errors of `Parachain.publish`.
        """
        chain = self.parachain(para)
        arguments.ensure_key(key)
        arguments.ensure_bytes(value, "value")
        arguments.ensure_ttl(ttl)
        chain.publish(key, value, ttl)

    def delete(self, para: int, keys: Iterable[PubsubKey]) -> None:
        """Delete keys of a publisher in the next relay block.

        Root makes the call for a system parachain, and otherwise the publisher's manager. Raises
        `UnknownParachain` or `BadRequest`.
        """
        publisher = self.parachain(para).para
        listed = arguments.ensure_keys(keys)
        if self.config.relay.pubsub.is_system(publisher):
            self.call(Root(), "Broadcaster", "force_delete_keys", publisher, listed)
        else:
            info = RegisteredPublishers.get(self.relay.storage(), publisher)
            manager = self.manager(para) if info is None else info.manager
            self.call(Signed(manager), "Broadcaster", "delete_keys", publisher, listed)

    def send(self, sender: int, recipient: int, data: bytes) -> None:
        """Let a parachain send a message to another one over a channel.

        Raises `UnknownParachain` or `BadRequest`.
        """
        arguments.ensure_bytes(data, "message")
        self.parachain(sender).horizontal.append(
            OutboundHrmpMessage(self.parachain(recipient).para, data)
        )

    def send_downward(self, para: int, message: bytes) -> None:
        """Let the relay chain send a message to a parachain in its next block.

        Raises `UnknownParachain` or `BadRequest`.
        """
        arguments.ensure_bytes(message, "message")
        self.relay.send_downward(self.parachain(para).para, message)

    def upgrade(self, spec: RuntimeSpec) -> None:
        """Change a parachain's runtime by a downward message of governance.

        Subscriptions are part of the runtime, so that this is also how they change.
        """
        self.send_downward(spec.para_id, transact(set_code(spec)))

    def call(self, origin: Origin, pallet: str, name: str, *args: object) -> None:
        """Add a call to the next relay block.

        Raises `UnknownCall` if there is no such call or it takes other arguments, and `ScaleError`
        if they cannot be encoded.
        """
        executive = self.relay.runtime.executive
        info = getattr(getattr(executive.pallets.get(pallet), name, None), "call_info", None)
        if not isinstance(info, CallInfo):
            raise UnknownCall(f"the relay chain has no call {pallet}::{name}")
        if len(info.codecs) != len(args):
            takes = ", ".join(codec.name for codec in info.codecs) or "no arguments"
            raise UnknownCall(
                f"{pallet}::{name} takes {len(info.codecs)} ({takes}), not {len(args)}"
            )
        # Lists are copied, so that the caller cannot change them between this check and the block.
        copied = tuple(list(arg) if isinstance(arg, list) else arg for arg in args)
        extrinsic = Extrinsic(origin, Call(pallet, name, copied))
        try:
            executive.encode_extrinsic(extrinsic)
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            raise UnknownCall(f"{pallet}::{name} does not take these arguments: {error}") from error
        self._extrinsics.append(extrinsic)

    def offer(self, chain: int | None, extrinsics: Iterable[bytes]) -> None:
        """Offer extrinsics, with length prefixes, to the next block of a chain.

        `None` is the relay chain. Offers are only valid for one step. Raises `UnknownParachain`,
        and `BadRequest` if the chain has no accounts.
        """
        offered = tuple(extrinsics)
        if chain is None:
            arguments.ensure_accounts(self.config.relay.accounts, "the relay chain")
            self._offered = offered
        else:
            para = self.parachain(chain)
            arguments.ensure_accounts(para.spec().accounts, f"parachain {chain}")
            para.offered = offered

    def give_turn(self, para: int) -> None:
        """Let a parachain build in the next step, regardless of its pace.

        Raises `UnknownParachain`.
        """
        self._turns[self.parachain(para).para] = None

    def travel(self, slots: int) -> None:
        """Skip slots of the relay chain before its next block.

        Raises `BadRequest` if the number is negative.
        """
        arguments.ensure_blocks(slots)
        self.relay.skipped_slots += slots

    def manager(self, para: int) -> AccountId:
        """Return the account that owns a parachain on the relay chain."""
        if self.config.relay.accounts:
            return ALICE
        return AccountId(secret(self.config.seed, f"manager/{para}"))

    def step(self, blocks: int = 1) -> list[Step]:
        """Build relay blocks and return the result of each.

        A step is made completely or not at all. It does not fail if a parachain cannot build
        (`Step.idle`) or if a call or message fails (`Step.events`). Raises `BadRequest` if `blocks`
        is negative.
        """
        arguments.ensure_blocks(blocks)
        return [self._step() for _ in range(blocks)]

    def situation(self, para: int) -> Situation:
        """Return what the author of a parachain's next block knows, for an attack.

        Raises `UnknownParachain` or `CannotAuthor`.
        """
        return self._round().situation(self.parachain(para))

    # Observers, snapshots

    def observe(self, observer: Observer, *, past: bool = True) -> None:
        """Add an observer.

        It first receives the present state of each chain, and with `past` also all stored relay
        blocks.
        """
        self._observers.append(observer)
        if past:
            for block in self.relay.blocks:
                number = RelayBlockNumber(block.header.number)
                root = block.header.state_root
                slot = self._schedule.newest_slot(number)
                observer.relay_block(RelayRecord(number, block.header.hash(), root, slot))
        for para, chain in self.parachains.items():
            following = ParaBlockNumber(chain.header.number + 1)
            keys = tuple(collator.key for collator in chain.collators)
            observer.authorities(AuthorityRecord(para, following, keys))
            observer.subscriptions(subscriptions(chain))
        self._checkpoint(
            observer, self._schedule.segment(self.number + 1), self.parachains.values()
        )

    def finish(self) -> None:
        """Send observers the final state of each chain, which ends the last segment."""
        for observer in self._observers:
            self._checkpoint(
                observer, self._schedule.segment(self.number) + 1, self.parachains.values()
            )

    def dismiss(self) -> None:
        """Remove all observers. Add new ones after restoring a snapshot."""
        self._observers = []

    def snapshot(self) -> Snapshot:
        """Return a snapshot of this moment for `restore`."""
        chains = tuple(chain.copy() for chain in self.parachains.values())
        return Snapshot(
            self.relay.snapshot(),
            chains,
            tuple(self._extrinsics),
            offered=self._offered,
            ordered=dict(self.ordered),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a snapshot.

        Observers are not notified. Dismiss them, or add new ones afterwards.
        """
        self.relay.restore(snapshot.relay)
        self.parachains = {chain.para: chain.copy() for chain in snapshot.parachains}
        self._extrinsics = list(snapshot.extrinsics)
        self._offered = snapshot.offered
        self.ordered = dict(snapshot.ordered)
        self._turns = {}

    def fork(self) -> "Network":
        """Return an independent copy without observers. It is cheap, because it shares data."""
        fork = copy(self)
        fork.relay = self.relay.fork()
        fork.parachains = {para: chain.fork() for para, chain in self.parachains.items()}
        fork._observers = []  # noqa: SLF001  # another object of this class
        fork._extrinsics = list(self._extrinsics)  # noqa: SLF001  # another object of this class
        fork.ordered = dict(self.ordered)
        fork._turns = dict(self._turns)  # noqa: SLF001  # another object of this class
        return fork

    # One step

    def _step(self) -> Step:
        """Make one step, or restore the network if it fails."""
        before = self.snapshot()
        turns = self._turns
        try:
            finished, block = self._advance()
        except BaseException:
            # Even an interrupt by the user must not leave a half-built block.
            self.restore(before)
            self._turns = turns
            raise
        number = finished.number
        if self._schedule.begins_segment(number):
            for observer in self._observers:
                self._checkpoint(observer, self._schedule.segment(number), before.parachains)
        self._notify(finished, block)
        return Step(
            number,
            block,
            tuple(finished.records),
            parachains=tuple(self.parachains),
            idle=finished.idle,
        )

    def _advance(self) -> tuple[Round, Block]:
        """Build the candidates of all parachains and the relay block."""
        current = self._round()
        turns = self._turns
        self._turns = {}
        # Copies of the parachains, to undo blocks that the relay chain does not include.
        before = {
            para: chain.copy()
            for para, chain in self.parachains.items()
            if not chain.offline and (para in turns or chain.has_turn(current.number))
        }
        for para in before:
            current.turn(self.parachains[para])
        block = self.relay.build(current.backed, self._extrinsics, self._offered)
        self._extrinsics = list(block.left_out)
        for record in block.events:
            # The parachain's block is valid, but the relay chain did not include it. The parachain
            # returns to its state before the turn, and its messages wait again.
            if isinstance(record.event, CandidateRefused):
                self.parachains[record.event.para] = before[record.event.para]
                current.drop(record.event.para)
        # Offers are only valid for one step.
        self._offered = ()
        for chain in self.parachains.values():
            chain.offered = ()
        return current, block

    def _round(self) -> Round:
        return Round(self.relay, self._schedule, self.config.seed, unjudged=self.config.unjudged)

    # Observers

    @staticmethod
    def _checkpoint(observer: Observer, segment: int, chains: Iterable[Parachain]) -> None:
        for chain in chains:
            observer.checkpoint(CheckpointRecord(chain.para, segment, chain.header, chain.state))

    def _notify(self, finished: Round, block: Block) -> None:
        """Send observers the records of a step."""
        header = block.header
        events = tuple(record.event for record in block.events)
        chain = self.relay
        relay = RelayRecord(
            finished.number,
            header.hash(),
            header.state_root,
            slot=self._schedule.newest_slot(finished.number),
            events=events,
            executions=chain.executions,
            lost_downward=chain.lost_downward,
            parent=header.parent_hash,
            time=relay_time(header, chain.state),
            weight=chain.weight(),
            lags=chain.lags(events),
            clock=chain.clock(),
        )
        for observer in self._observers:
            observer.relay_block(relay)
            for record in finished.records:
                observer.candidate(record)
            for change in finished.changes:
                observer.subscriptions(change)

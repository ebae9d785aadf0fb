"""A running network: actions, steps and rewinds, each ending in a `Moment`.

One thread at a time may use it. A step that raises is undone whole: the network is again what it was after the last
step, and whoever asked for something since then is told.
"""

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Final

from pubsub_emulator.emulator.network import Network, Step
from pubsub_emulator.emulator.network.arguments import BadRequest, ensure_key, ensure_message
from pubsub_emulator.emulator.network.cheating import make_cheat, make_honest
from pubsub_emulator.emulator.network.records import Observer
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.chain import actions
from pubsub_emulator.node.chain.actions import Action
from pubsub_emulator.node.chain.block import RELAY, Acts, Block, Chain, Moment, Saved
from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.origin import Root
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, decode_spec, merge_subscriptions
from pubsub_emulator.runtime.parachain.governance import check_runtime, transact

_SET_STORAGE: Final = b"\x00\x04"
_KILL_STORAGE: Final = b"\x00\x05"
_entries = scale.vec(scale.pair(scale.bytes_, scale.bytes_))
_keys = scale.vec(scale.bytes_)

Observers = Callable[[int], Iterable[Observer]]
"""Makes the observers of a line of blocks; 1 for the first, one more after each rewind."""


class LiveNetwork:
    """A scenario's network that is stepped on request."""

    def __init__(
        self, simulation: Simulation, observers: Observers | None = None, *, keep_snapshots: bool = True
    ) -> None:
        """`keep_snapshots` says whether moments can be gone back to."""
        self.simulation = simulation
        self.epoch = 1
        self._observers = observers
        self._keep_snapshots = keep_snapshots
        self._ordered: dict[ParaId, RuntimeSpec] = {}
        self._observe()
        self.genesis = self._genesis()
        self._clean = self._save()
        self._newest = self.genesis
        self.pending: list[Action] = []
        """What was applied since the last step, in order."""
        self._acts: Acts | None = None

    @property
    def network(self) -> Network:
        """The network."""
        return self.simulation.network

    def finish(self) -> None:
        """Tell observers that nothing follows."""
        self.network.finish()

    # Steps

    def step(self) -> Moment:
        """Build one relay block with the scenario's traffic and what was asked for.

        Whatever it raises, the network is as it was after the last step: what was asked for since then is lost.
        """
        try:
            step = self.simulation.step()
        except BaseException:
            self.undo()
            raise
        if self.pending:
            self._acts = Acts(step.number - 1, tuple(self.pending), self._acts)
        self.pending = []
        self._clean = self._save()
        self._ordered = {
            para: spec
            for para, spec in self._ordered.items()
            if spec.spec_version > self.network.parachain(para).spec().spec_version
        }
        self._newest = self._moment(step)
        return self._newest

    def undo(self) -> None:
        """Forget what was asked for since the last step."""
        self._restore(self._clean)
        self.pending = []

    def rewind(self, moment: Moment) -> Moment:
        """Go back to a moment that has a snapshot; observers of this line end, and new ones begin."""
        saved = moment.saved
        if saved is None:
            raise BadRequest(f"relay block {moment.number} cannot be gone back to")
        self.network.finish()
        self.network.dismiss()
        self._restore(saved)
        self.pending = []
        self._acts = moment.acts
        self._clean = saved
        self._newest = moment
        self.epoch += 1
        self._observe()
        return moment

    def branch(self, moment: Moment) -> "LiveNetwork":
        """A network that goes on from a moment by itself, unobserved. Raises `BadRequest` where it cannot."""
        if moment.saved is None:
            raise BadRequest(f"relay block {moment.number} cannot be gone on from")
        branch = copy(self)
        branch.simulation = self.simulation.fork()
        branch._observers = None  # noqa: SLF001  # another object of this class
        branch._restore(moment.saved)  # noqa: SLF001  # another object of this class
        branch._clean = moment.saved  # noqa: SLF001  # another object of this class
        branch._newest = moment  # noqa: SLF001  # another object of this class
        branch.pending = []
        branch._acts = moment.acts  # noqa: SLF001  # another object of this class
        return branch

    # Actions

    def runtime(self, para: ParaId) -> RuntimeSpec:
        """A parachain's newest runtime, which may not be in force yet. Raises `UnknownParachain`."""
        chain = self.network.parachain(para)
        return self._ordered.get(chain.para) or chain.spec()

    def apply_all(self, todo: Iterable[Action]) -> list[int | None]:
        """Apply all of it, or nothing. Raises as `apply`."""
        before = list(self.pending)
        try:
            return [self.apply(action) for action in todo]
        except BaseException:
            self.undo()
            for action in before:
                self.apply(action)
            raise

    def apply(self, action: Action) -> int | None:
        """Do what is asked; it shows with the next step. Raises `PubsubError` and changes nothing when it cannot be.

        Returns the new spec version for `Subscribe` and `Upgrade`, the collator for `Cheat`, their number for `Honest`.
        """
        result = self._apply(action)
        self.pending.append(action)
        return result

    def _apply(self, action: Action) -> int | None:
        network = self.network
        match action:
            case actions.Publish():
                network.publish(action.para, PubsubKey(action.key), action.value, action.ttl)
            case actions.Delete():
                network.delete(ParaId(action.para), [PubsubKey(key) for key in action.keys])
            case actions.Subscribe():
                return self._subscribe(action)
            case actions.Upgrade():
                return self._upgrade(action)
            case actions.AddKeys() | actions.DropKeys():
                return self._resubscribe(action)
            case actions.Limit():
                current = self.runtime(ParaId(action.para))
                return self._order(replace(_limited(current, action), spec_version=current.spec_version + 1))
            case actions.Cheat():
                return make_cheat(network, action.para, action.strategies, action.collator, action.rate)
            case actions.Honest():
                return make_honest(network, action.para)
            case actions.Register():
                usual = network.config.relay.pubsub.publisher_deposit
                deposit = usual if action.deposit is None else action.deposit
                manager = network.manager(action.para)
                network.call(Root(), "Broadcaster", "force_register_publisher", manager, deposit, action.para)
            case actions.Deregister():
                network.call(Root(), "Broadcaster", "force_deregister_publisher", action.para)
            case actions.Offline():
                network.take_offline(action.para, offline=action.offline)
            case actions.Upward():
                ensure_message(action.message)
                network.parachain(action.para).send_upward(action.message)
            case actions.Downward():
                network.send_downward(action.para, action.message)
            case actions.Horizontal():
                network.send(action.sender, action.recipient, action.message)
            case actions.SetStorage():
                self._set_storage(action)
            case actions.Travel():
                self._travel(action.slot)
            case actions.Turn():
                network.give_turn(action.para)
            case actions.Offer():
                network.offer(action.chain, action.extrinsics)
            case actions.Rewind():
                raise BadRequest("a rewind is no action of a step")
        return None

    def _subscribe(self, action: actions.Subscribe) -> int:
        chain = self.network.parachain(action.para)
        for publisher, keys in action.items:
            self.network.parachain(publisher)
            for key in keys:
                ensure_key(key)
        current = self.runtime(chain.para)
        declared = [(ParaId(publisher), [PubsubKey(key) for key in keys]) for publisher, keys in action.items]
        return self._order(
            replace(current, subscriptions=merge_subscriptions(declared), spec_version=current.spec_version + 1)
        )

    def _resubscribe(self, action: actions.AddKeys | actions.DropKeys) -> int:
        chain, publisher = self.network.parachain(action.para), ParaId(action.publisher)
        if chain.pace.on_demand:
            raise BadRequest(f"{chain.para} is a publisher only and cannot subscribe")
        current = self.runtime(chain.para)
        keys = [PubsubKey(key) for key in action.keys]
        for key in keys:
            ensure_key(key)
        held = current.subscriptions.get(publisher, ())
        others = [(each, list(known)) for each, known in current.subscriptions.items()]
        if isinstance(action, actions.AddKeys):
            merged = merge_subscriptions([*others, (self.network.parachain(publisher).para, keys)])
        else:
            if not held or not set(keys) <= set(held):
                raise BadRequest(f"{chain.para} does not subscribe to that of {publisher}")
            left = [key for key in held if keys and key not in keys]
            merged = merge_subscriptions(
                [*((each, known) for each, known in others if each != publisher), (publisher, left)]
            )
        return self._order(replace(current, subscriptions=merged, spec_version=current.spec_version + 1))

    def _upgrade(self, action: actions.Upgrade) -> int:
        spec, current = decode_spec(action.code), self.runtime(ParaId(action.para))
        if (spec.para_id, spec.accounts) != (current.para_id, current.accounts):
            raise BadRequest(f"a runtime of {current.para_id} keeps that id, and its chain's accounts or their absence")
        if spec.spec_version != current.spec_version + 1:
            raise BadRequest(
                f"version {spec.spec_version} does not follow {current.spec_version}, the newest runtime of "
                f"{current.para_id}"
            )
        return self._order(spec)

    def _order(self, spec: RuntimeSpec) -> int:
        check_runtime(spec)
        self.network.upgrade(spec)
        self._ordered[spec.para_id] = spec
        return spec.spec_version

    def _set_storage(self, action: actions.SetStorage) -> None:
        put = [(key, value) for key, value in action.entries if value is not None]
        killed = [key for key, value in action.entries if value is None]
        if action.chain is RELAY:
            if put:
                self.network.call(Root(), "System", "set_storage", put)
            if killed:
                self.network.call(Root(), "System", "kill_storage", killed)
            return
        if put:
            self.network.send_downward(action.chain, transact(_SET_STORAGE + _entries.encode(put)))
        if killed:
            self.network.send_downward(action.chain, transact(_KILL_STORAGE + _keys.encode(killed)))

    def _travel(self, slot: int) -> None:
        following = self.network.relay.slot(self.network.number + 1)
        if slot < following:
            raise BadRequest(f"the next block has slot {following} at least: time goes forward")
        if slot > actions.LAST_SLOT:
            raise BadRequest(f"a slot is at most {actions.LAST_SLOT}, so that blocks can follow")
        self.network.travel(slot - following)

    # Moments

    def _observe(self) -> None:
        for observer in self._observers(self.epoch) if self._observers is not None else ():
            self.network.observe(observer, past=True)

    def _save(self) -> Saved:
        return Saved(self.network.snapshot(), dict(self._ordered))

    def _restore(self, saved: Saved) -> None:
        self.network.restore(saved.network)
        self._ordered = dict(saved.ordered)

    def _genesis(self) -> Moment:
        network = self.network
        first = network.relay.blocks[-1]
        number = RelayBlockNumber(first.header.number)
        relay = Block(RELAY, first.header.hash(), first.header, (), first.state, number)
        heads: dict[Chain, Block] = {RELAY: relay}
        for para, chain in network.parachains.items():
            heads[para] = Block(para, chain.header.hash(), chain.header, (), chain.state, number)
        return Moment(relay, (), (), heads, self._save() if self._keep_snapshots else None)

    def _moment(self, step: Step) -> Moment:
        kept = self.network.relay.blocks[-1]
        relay = Block(RELAY, kept.header.hash(), kept.header, step.block.extrinsics, kept.state, step.number)
        blocks = tuple(
            Block(
                record.chain,
                record.candidate.hash(),
                record.candidate.header,
                record.candidate.body(),
                record.outcome.state,
                step.number,
            )
            for record in step.records
            if record.outcome is not None
        )
        heads = {**self._newest.heads, RELAY: relay, **{block.chain: block for block in blocks}}
        saved = self._clean if self._keep_snapshots else None
        return Moment(relay, blocks, step.records, heads, saved, kept.executions, step.idle, self._acts)


def _limited(spec: RuntimeSpec, limit: actions.Limit) -> RuntimeSpec:
    """A runtime with another limit; a depth of 0 is none."""
    match limit.name:
        case "max_pov_size":
            return replace(spec, max_pov_size=limit.value)
        case "max_cache_bytes":
            return replace(spec, max_cache_bytes=limit.value)
        case "max_trie_depth":
            return replace(spec, max_trie_depth=limit.value or None)

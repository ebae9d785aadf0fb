"""A collator's knowledge when it authors a block: the honest block, and material for cheats."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from pubsub_emulator.collator.author import (
    FullProof,
    RelayAccess,
    build,
    descendants,
    full_proof,
    make_inherent,
)
from pubsub_emulator.primitives.header import DigestItem, aura_pre_digest, turn_of
from pubsub_emulator.primitives.types import (
    Hash,
    ParaBlockNumber,
    ParaId,
    PubsubKey,
    RelayBlockNumber,
    Slot,
)
from pubsub_emulator.runtime.framework.abridged import Shares
from pubsub_emulator.runtime.framework.message_chains import InboundMessages
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan, RootCall, plan
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, Inherent
from pubsub_emulator.runtime.parachain.descendants import authority_keys
from pubsub_emulator.runtime.parachain.execute import BlockOutcome, execute_block
from pubsub_emulator.runtime.parachain.governance import root_calls
from pubsub_emulator.runtime.parachain.signed_body import OfferedBody, SignedBody
from pubsub_emulator.runtime.parachain.validate import RelayContext
from pubsub_emulator.runtime.rules import Rules


@dataclass(frozen=True, eq=False)
class Situation:
    """A parachain's newest block, a relay parent, and the messages that the block has.

    Derived values are computed once. The parent's state is never changed.
    """

    parent: ChainHead
    relay: RelayAccess
    messages: InboundMessages
    slot: Slot
    slot_now: Slot
    seeds: tuple[bytes, ...]
    """The collators' secret seeds, in turn order."""
    stranger: bytes
    """The secret seed of somebody who is not a collator."""
    others: tuple[RelayAccess, ...] = ()
    """Other relay blocks, mostly older ones."""
    foreign: RelayAccess | None = None
    """A relay state that belongs to no relay block."""
    budget: int | None = None
    """The budget with which a proof is judged alone, or `None` if a block is judged.

    A small budget lets a walk stop anywhere without megabytes of state.
    """
    extrinsics: tuple[bytes, ...] = ()
    """The signed extrinsics offered to the author."""
    waiting: InboundMessages | None = None
    """All messages that the parent has not processed, in full, if they are known."""
    memo: dict[tuple[int, Hash, tuple[bytes, ...]], FullProof] = field(
        default_factory=dict, repr=False
    )
    """The results of `proof_of` by relay block, root and authorities."""
    lists: dict[tuple[int, Hash], list[bytes]] = field(default_factory=dict, repr=False)
    """The results of `listed` by relay block and root."""

    @cached_property
    def storage(self) -> Storage:
        """Return the parent's state, which must only be read."""
        return Storage(self.parent.state.fork())

    @cached_property
    def spec(self) -> RuntimeSpec:
        """Return the runtime with which the block is executed."""
        return runtime_spec(self.storage)

    @cached_property
    def rules(self) -> Rules:
        """Return the rules that the runtime names."""
        return self.parent.rules.named(self.spec.rules)

    @cached_property
    def view(self) -> SubscriberView:
        """Return the subscriber's pre-state."""
        return SubscriberView(self.storage, self.spec, self.rules)

    @cached_property
    def proof(self) -> FullProof:
        """Return the full proof of the relay parent."""
        return full_proof(self.relay, self.spec, self.rules, self.authorities)

    @cached_property
    def authorities(self) -> tuple[bytes, ...]:
        """Return the keys that the honest block proves because of its relay headers (UP-4)."""
        return self.authorities_on(self.relay)

    def authorities_on(self, relay: RelayAccess) -> tuple[bytes, ...]:
        """Return the keys that a block on `relay` proves because of its relay headers."""
        return authority_keys(self.spec, descendants(self.spec, relay))

    @cached_property
    def shares(self) -> Shares:
        """Return the bytes of full messages that the block may have."""
        return self.spec.shares(self.rules)

    @property
    def subscribed_items(self) -> list[tuple[ParaId, PubsubKey]]:
        """Return the items that the chain subscribes to, in ascending order."""
        items: list[tuple[ParaId, PubsubKey]] = []
        for para, keys in self.spec.subscriptions.items():
            items += [(para, key) for key in keys]
        return items

    @property
    def allowed(self) -> int:
        """Return the budget of the walk in bytes."""
        return self.spec.budget(self.messages.weight) if self.budget is None else self.budget

    def calls_in(self, messages: InboundMessages) -> tuple[RootCall, ...] | None:
        """Return the root calls that a block with these messages runs.

        Returns `None` if a proof alone is judged.
        """
        return None if self.budget is not None else root_calls(self.spec, messages)

    @cached_property
    def walked(self) -> Plan:
        """Return the honest walk, whose nodes are the canonical set."""
        return plan(
            self.view,
            self.relay.storage_root,
            self.proof.nodes,
            self.allowed,
            self.calls_in(self.messages),
            authorities=self.authorities,
        )

    @cached_property
    def canonical(self) -> tuple[bytes, ...]:
        """Return the only valid list of nodes."""
        return self.walked.proof()

    @cached_property
    def honest(self) -> Candidate:
        """Return the honest block, sealed."""
        inherent = self.inherent(self.relay, self.walked, self.messages)
        seed = turn_of(self.slot, self.seeds)
        storage = Storage(self.parent.state.fork())
        body = OfferedBody(self.extrinsics)
        return build(
            storage,
            self.spec,
            self.parent.header,
            inherent,
            self.walked,
            self.slot,
            seed,
            body=body,
        )[0]

    def inherent(self, relay: RelayAccess, walked: Plan, messages: InboundMessages) -> Inherent:
        """Return the inherent of a block on `relay` with the nodes of `walked` and the messages."""
        return make_inherent(self.parent, self.spec, relay, walked, messages)

    def relay_at(self, number: int) -> RelayAccess | None:
        """Return the relay block of height `number`, or `None`."""
        return next((relay for relay in (self.relay, *self.others) if relay.number == number), None)

    def context(self, number: int) -> RelayContext:
        """Return the relay chain's facts about its block `number`."""
        relay = self.relay_at(number)
        root = None if relay is None else relay.storage_root
        return RelayContext(RelayBlockNumber(number), root, self.slot_now)

    def proof_of(
        self, relay: RelayAccess, authorities: tuple[bytes, ...] | None = None
    ) -> FullProof:
        """Return the full proof of everything that the subscriber may read of a relay block.

        `authorities` are the keys that the block's relay headers need, by default those of the
        honest headers.
        """
        if authorities is None:
            authorities = self.authorities_on(relay)
        if relay is self.relay and authorities == self.authorities:
            return self.proof
        key = (relay.number, relay.storage_root, authorities)
        if key not in self.memo:
            self.memo[key] = full_proof(relay, self.spec, self.rules, authorities)
        return self.memo[key]

    def listed(self, relay: RelayAccess) -> list[bytes]:
        """Return the nodes of `proof_of` as a list, which draws choose from."""
        key = (relay.number, relay.storage_root)
        if key not in self.lists:
            self.lists[key] = list(self.proof_of(relay).nodes.values())
        return self.lists[key]

    def walk_as_if(
        self,
        *,
        relay: RelayAccess | None = None,
        spec: RuntimeSpec | None = None,
        budget: int | None = None,
        pretend: Callable[[Storage], None] | None = None,
    ) -> Plan:
        """Return the walk under false assumptions.

        They are another relay block, runtime or budget, or the changes that `pretend` makes to the
        state.
        """
        relay = self.relay if relay is None else relay
        # The block keeps the honest relay headers, so its proof needs their keys.
        nodes = self.proof_of(relay, self.authorities).nodes
        if spec is not None:
            known = self.spec.subscriptions
            nodes = dict(nodes)
            for para, keys in spec.subscriptions.items():
                new_keys = [key for key in keys if key not in known.get(para, ())]
                if new_keys:
                    relay.prove((), dict((self.rules.placed(para, new_keys),)), nodes)
        storage = self.storage
        if pretend is not None:
            storage = Storage(self.parent.state.fork())
            pretend(storage)
        view = SubscriberView(storage, self.spec if spec is None else spec, self.rules)
        allowed = self.allowed if budget is None else budget
        return plan(
            view,
            relay.storage_root,
            nodes,
            allowed,
            self.calls_in(self.messages),
            authorities=self.authorities,
        )

    def state_root_after(
        self,
        walked: Plan,
        *,
        inherent: Inherent | None = None,
        digest: tuple[DigestItem, ...] | None = None,
        number: int | None = None,
        extrinsics: tuple[bytes, ...] | None = None,
    ) -> Hash:
        """Return the post-state root of a block with this walk.

        Arguments and errors are those of `outcome_of`.
        """
        return self.outcome_of(
            walked, inherent=inherent, digest=digest, number=number, extrinsics=extrinsics
        ).state_root

    def outcome_of(
        self,
        walked: Plan,
        *,
        inherent: Inherent | None = None,
        digest: tuple[DigestItem, ...] | None = None,
        number: int | None = None,
        extrinsics: tuple[bytes, ...] | None = None,
    ) -> BlockOutcome:
        """Return the outcome of a block with this walk, which begins with `digest`.

        Arguments that are `None` have the honest block's values. Raises `BadBody` for extrinsics
        that cannot be in the block.
        """
        body = SignedBody(self.honest.extrinsics if extrinsics is None else extrinsics)
        inherent = self.honest.inherent if inherent is None else inherent
        digest = (aura_pre_digest(self.slot),) if digest is None else digest
        height = ParaBlockNumber(self.parent.header.number + 1 if number is None else number)
        storage = Storage(self.parent.state.fork())
        parent = self.parent.header
        return execute_block(
            storage,
            self.spec,
            parent,
            number=height,
            digest=digest,
            inherent=inherent,
            plan=walked,
            extrinsics=body,
        )


def without_publisher(spec: RuntimeSpec, para: ParaId) -> RuntimeSpec:
    """Return the same runtime without the subscription to `para`."""
    return replace(
        spec,
        subscriptions={other: keys for other, keys in spec.subscriptions.items() if other != para},
    )

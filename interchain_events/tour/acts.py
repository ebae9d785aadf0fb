"""Acts of `pubsub tour`: PRISM, ICRC-72, its replay, and the distributor.

PRISM reads the relay chain's events, canisters subscribe to them, missed events are replayed, and
the distributor publishes the last of them on three other networks.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Final

from interchain_events.distributor.event import Event
from interchain_events.distributor.simulation.invariants import surprises
from interchain_events.distributor.simulation.network import SimulatedNetwork as Far
from interchain_events.distributor.simulation.world import World
from interchain_events.events.log.sources.network import NetworkLog
from interchain_events.events.log.sql_store import SqlStore, open_store
from interchain_events.events.rows import Row
from interchain_events.icrc72.bridge import Bridge
from interchain_events.icrc72.client import App, EventNotification, plain
from interchain_events.icrc72.deployment import PubSub, deploy
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.network import CanisterNetwork as Subnets
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.pallets.prism import PrismConfig
from interchain_events.prism.core.messages import AddKey, Usage
from interchain_events.prism.make import (
    Secret,
    atala_object,
    create_did,
    public_key,
    update_did,
)
from interchain_events.prism.tables.processor import Processor
from pubsub_emulator.laboratory.tour import Act, Tour, must
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.accounts.endowed import ALICE
from pubsub_emulator.runtime.framework.origin import Signed

ADDED: Final = (PrismConfig(),)
"""The pallets that the acts need."""

PUBLISHED: Final = "Broadcaster.DataPublished"
PATTERN: Final = f"org.polkadot.*.*.{PUBLISHED}"
_MISSED: Final = 24
"""The relay block until which the stopped canister misses events that its broadcaster sends."""
_END: Final = 32
"""The relay block until which it misses further events, without a broadcaster."""
_ROUNDS: Final = 3
"""The rounds of the subnets after each relay block."""
_SETTLE: Final = 600
"""The rounds after which all deliveries are finished."""
_NETWORKS: Final = ("alastria", "fabric", "hashnet")
_TRACE: Final = "pubsub icrc72 trace demo --namespace org.example.price --event 12"


class Follower(App):
    """A canister that records the row of each event that it receives."""

    def on_event(self, ctx: Context, event: EventNotification) -> None:
        """Record the `seq` of the event's row."""
        del ctx
        self.data.append(plain(event.data)["seq"])


class EventActs:
    """One log and one set of canisters, which follow the tour's network."""

    def __init__(self, tour: Tour, log: SqlStore) -> None:
        self.tour = tour
        self.log = log
        self.writer = NetworkLog(tour.network, log)
        settings = replace(DEFAULTS, publications=10_000)
        self.subnets = Subnets(2)
        self.canisters: PubSub = deploy(self.subnets, broadcasters=(0, 1, 1), settings=settings)
        self.subnets.create(0, Bridge(self.canisters.orchestrator, settings, store=log))
        listener = Follower(
            self.canisters.orchestrator, settings, subscriptions={PATTERN: {}}, publications={}
        )
        self.follower = self.subnets.create(1, listener)
        self.subnets.step(20)
        # The subnets take some rounds after each relay block.
        tour.after_each_block.append(lambda: self.subnets.step(_ROUNDS))

    def published(self) -> list[Row]:
        """Return the rows of the prices that have been published so far."""
        return [row for row in self.log.read(0, 1_000_000).rows if row.kind == PUBLISHED]

    def prism(self) -> Iterator[str]:
        """Anchor a DID on the same relay chain, and read it back from its log."""
        master, issuing = (
            Secret.of(blake2_256(name).hex()) for name in (b"tour/master", b"tour/issuing")
        )
        created = create_did({"master0": (Usage.MASTER_KEY, master)})
        added = [AddKey(public_key("issuing0", Usage.ISSUING_KEY, issuing))]
        good = update_did(created.suffix, created.hash, added, "master0", master)
        forged = update_did(created.suffix, good.hash, added, "master0", issuing)
        anchorer = AccountId(ALICE)
        self.tour.network.call(
            Signed(anchorer), "Prism", "anchor", atala_object([created.raw, good.raw, forged.raw])
        )
        self.tour.build(self.tour.network.number + 1)
        self.writer.flush()
        processor = Processor(self.log.database, self.log, depth=0)
        processor.run()
        with self.log.database.transaction() as session:
            rows = session.run(
                "SELECT atala_operation_status FROM atala_operations ORDER BY"
                " atala_operation_seq_no"
            )
        statuses = [str(row[0]) for row in rows]
        applied = sum("APPLIED" in status for status in statuses)
        must((len(statuses), applied) == (3, 2), f"PRISM has the statuses {statuses}")
        yield (
            f"Relay block {self.tour.network.number} anchored 3 operations on the DID"
            f" did:prism:{created.suffix[:12]}…:"
        )
        yield "2 were applied, and 1, which another key had signed, was rejected."
        self.tour.note("prism", created.suffix, statuses)

    def icrc72(self) -> Iterator[str]:
        """Let a canister subscribe to the chain's events."""
        self.subnets.step(_SETTLE)
        heard = self._heard()
        due = [row.seq for row in self.published()]
        must(heard == due, f"the canister heard {len(heard)} of {len(due)} events")
        yield f"A canister on another subnet subscribed to `{PATTERN}`."
        yield (
            f"It received each of the {len(heard)} prices of relay blocks 1 to"
            f" {self.tour.network.number}, in order and once."
        )
        self.tour.note("icrc72", heard)

    def replay(self) -> Iterator[str]:
        """Stop the canister, remove its broadcaster, and have the missed events replayed."""
        before = len(self._heard())
        first = self.tour.network.number + 1
        self.subnets.stop(self.follower)
        self.tour.build(_MISSED)
        self.subnets.uninstall(self.canisters.broadcasters[1])
        self.tour.build(_END)
        self.writer.flush()
        self.subnets.start(self.follower)
        self.subnets.step(_SETTLE)
        heard = self._heard()
        due = [row.seq for row in self.published()]
        must(heard == due, f"after the replay the canister has {len(heard)} of {len(due)} events")
        replays = len(self.canisters.registry.state.replays)
        missed = len(due) - before
        yield (
            f"The canister was stopped for relay blocks {first} to {_END}; their {missed} prices"
            " were lost with its broadcaster."
        )
        yield (
            f"It noticed the gap and asked for {replays} replays: now it has all"
            f" {before} + {missed} = {len(due)} prices, in order and once."
        )
        self.tour.note("replay", heard, replays)

    def distributor(self) -> Iterator[str]:
        """Spread the newest prices over three networks, one of which is down."""
        networks = {name: Far(name) for name in _NETWORKS}
        world = World(1, networks, 2)
        world.start()
        world.run(1_000)
        endpoint = "https://desk.example/prices"
        world.subscribe(endpoint)
        networks["fabric"].up = False
        originals: dict[str, list[Event]] = {}
        for row in self.published()[-5:]:
            name, event = _event(row)
            originals[name] = [event]
            world.publish(name, event)
            world.run(5_000)
        networks["fabric"].up = True
        world.heal()
        settled = world.settle()
        wrong = surprises(world, originals)
        must(settled and not wrong, f"the distributor left {wrong or 'work undone'}")
        sent = sum(answer == 200 for _, _, answer in world.endpoints[endpoint].got)
        counts = {name: len(network.log) for name, network in networks.items()}
        must(set(counts.values()) == {len(originals)}, f"the networks hold {counts}")
        yield (
            f"A distributor of 2 processes published the newest {len(originals)} prices on"
            f" {len(_NETWORKS)} networks: {', '.join(_NETWORKS)}."
        )
        yield (
            f"fabric was down at first; now each network has these {len(originals)} events once,"
            f" and a subscriber got {sent} notifications."
        )
        self.tour.note("distributor", counts, sent, world.digest())

    def _heard(self) -> list[object]:
        """Return the `seq` of each row that the canister received, in order."""
        return list(self.canisters.app(self.follower).data)


def _event(row: Row) -> tuple[str, Event]:
    """Return the id of a published price, and the price as an event of the distributor."""
    name = "0x" + blake2_256(bytes(row.id)).hex()
    key = str(row.fields["key"])
    location = f"https://prices.example/{key}?hl={name}"
    return name, Event("PricePublished", location, ("prd",), key, name, "0x" + "5c" * 32)


def acts(tour: Tour, stack: ExitStack) -> list[Act]:
    """Return the acts. `stack` closes the log that they share."""
    log = stack.enter_context(closing(open_store(":memory:", "tour")))
    events = EventActs(tour, log)
    return [
        Act(
            "PRISM: identities in the events of that chain",
            events.prism,
            "pubsub serve --prism, then pubsub prism --help",
        ),
        Act("ICRC-72: canisters subscribe to that chain", events.icrc72, _TRACE),
        Act("ICRC-77: what a canister missed is replayed", events.replay, "pubsub icrc72 demo"),
        Act(
            "The distributor: the same event on three networks",
            events.distributor,
            "pubsub distributor demo",
        ),
    ]

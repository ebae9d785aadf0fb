"""`pubsub tour`: acts on one network, each with the command to try next.

All acts use the relay chain of act 1: PRISM reads its events, canisters subscribe to them, missed
events are replayed, and the distributor publishes the last of them on three other networks.
Everything is determined by the scenario, so the digest is the same on every machine.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Final

from pubsub_emulator.cli.base.program import callable_here
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.screen import say
from pubsub_emulator.distributor.event import Event
from pubsub_emulator.distributor.simulation.invariants import surprises
from pubsub_emulator.distributor.simulation.network import SimulatedNetwork as Far
from pubsub_emulator.distributor.simulation.world import World
from pubsub_emulator.emulator.observers.digest import RunDigest
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.events.log.sources.network import NetworkLog
from pubsub_emulator.events.log.sql_store import SqlStore, open_store
from pubsub_emulator.events.rows import Row
from pubsub_emulator.icrc72.bridge import Bridge
from pubsub_emulator.icrc72.client import App, EventNotification, plain
from pubsub_emulator.icrc72.deployment import PubSub, deploy
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.network import CanisterNetwork as Subnets
from pubsub_emulator.icrc72.settings import DEFAULTS
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.accounts.endowed import ALICE
from pubsub_emulator.runtime.framework.origin import Signed

SCENARIO: Final = "oracle"
PUBLISHED: Final = "Broadcaster.DataPublished"
PATTERN: Final = f"org.polkadot.*.*.{PUBLISHED}"
_LIVE: Final = 16
_MISSED: Final = 24
_END: Final = 32
_ROUNDS: Final = 3
_SETTLE: Final = 600
_NETWORKS: Final = ("alastria", "fabric", "hashnet")


class TourFailed(PubsubError):
    """An act had a wrong result: a defect of this program."""


class Follower(App):
    """A canister that records the row of each event that it receives."""

    def on_event(self, ctx: Context, event: EventNotification) -> None:
        """Keep the event's place in the log."""
        del ctx
        self.data.append(plain(event.data)["seq"])


class Tour:
    """The acts share one network, one log and one set of canisters."""

    def __init__(self, log: SqlStore) -> None:
        self.simulation = Simulation(load_bundled(SCENARIO), prism=True)
        self.chain_digest = RunDigest()
        self.network = self.simulation.network
        self.network.observe(self.chain_digest)
        self.log = log
        self.writer = NetworkLog(self.network, log)
        self.delivered = 0
        self.parts: list[bytes] = []
        settings = replace(DEFAULTS, publications=10_000)
        self.subnets = Subnets(2)
        self.canisters: PubSub = deploy(self.subnets, broadcasters=(0, 1, 1), settings=settings)
        self.subnets.create(0, Bridge(self.canisters.orchestrator, settings, store=log))
        listener = Follower(
            self.canisters.orchestrator, settings, subscriptions={PATTERN: {}}, publications={}
        )
        self.follower = self.subnets.create(1, listener)
        self.subnets.step(20)

    def build(self, until: int) -> None:
        """Build relay blocks; the subnets take some rounds after each."""
        while self.network.number < until:
            step = self.simulation.step()
            for record in step.records:
                if record.outcome is not None:
                    self.delivered += sum(
                        each.value is not None for each in record.outcome.deliveries
                    )
            self.subnets.step(_ROUNDS)

    def published(self) -> list[Row]:
        """The values published so far, from the log."""
        return [row for row in self.log.read(0, 1_000_000).rows if row.kind == PUBLISHED]

    def note(self, *what: object) -> None:
        """Add an act's result to the digest."""
        self.parts.append(blake2_256(repr(what).encode()))

    def relay_chain(self) -> Iterator[str]:
        """Publish and subscribe over the relay chain."""
        self.build(_LIVE)
        self.writer.flush()
        published = len(self.published())
        yield (
            f"In {_LIVE} relay blocks two oracles published {published} prices into tries of the"
            " relay chain."
        )
        yield (
            f"A market and a wallet read them through pruned storage proofs: {self.delivered}"
            " deliveries."
        )
        _must(published > 0 and self.delivered > 0, "nothing was delivered")
        self.note("relay", published, self.delivered)

    def prism(self) -> Iterator[str]:
        """Anchor a DID on the same relay chain, and read it back from its log."""
        from pubsub_emulator.prism.core.messages import AddKey, Usage
        from pubsub_emulator.prism.make import (
            Secret,
            atala_object,
            create_did,
            public_key,
            update_did,
        )
        from pubsub_emulator.prism.tables.processor import Processor

        master, issuing = (
            Secret.of(blake2_256(name).hex()) for name in (b"tour/master", b"tour/issuing")
        )
        created = create_did({"master0": (Usage.MASTER_KEY, master)})
        added = [AddKey(public_key("issuing0", Usage.ISSUING_KEY, issuing))]
        good = update_did(created.suffix, created.hash, added, "master0", master)
        forged = update_did(created.suffix, good.hash, added, "master0", issuing)
        who = AccountId(ALICE)
        self.network.call(
            Signed(who), "Prism", "anchor", atala_object([created.raw, good.raw, forged.raw])
        )
        self.build(self.network.number + 1)
        self.writer.flush()
        processor = Processor(self.log.database, self.log, depth=0)
        processor.run()
        with self.log.database.transaction() as session:
            rows = session.run(
                "SELECT atala_operation_status FROM atala_operations ORDER BY"
                " atala_operation_seq_no"
            )
        statuses = [str(row[0]) for row in rows]
        applied = sum("APPLIED" in each for each in statuses)
        _must((len(statuses), applied) == (3, 2), f"PRISM came to {statuses}")
        yield (
            "One block of the same relay chain anchored three operations on the DID"
            f" did:prism:{created.suffix[:12]}…"
        )
        yield "Two were applied; the one that another key had signed was rejected."
        self.note("prism", created.suffix, statuses)

    def icrc72(self) -> Iterator[str]:
        """Let a canister subscribe to the chain's events."""
        self.subnets.step(_SETTLE)
        heard, due = self._heard(), [row.seq for row in self.published()]
        _must(heard == due, f"the canister heard {len(heard)} of {len(due)} events")
        yield f"A canister on another subnet subscribed to `{PATTERN}`. It was told"
        yield (
            f"of all {len(heard)} prices in order, by a publisher that reads the chain's log and by"
            " broadcasters."
        )
        self.note("icrc72", heard)

    def replay(self) -> Iterator[str]:
        """Stop the canister and kill the broadcaster, then let what was missed be replayed."""
        before = len(self._heard())
        self.subnets.stop(self.follower)
        self.build(_MISSED)
        self.subnets.uninstall(self.canisters.broadcasters[1])
        self.build(_END)
        self.writer.flush()
        self.subnets.start(self.follower)
        self.subnets.step(_SETTLE)
        heard, due = self._heard(), [row.seq for row in self.published()]
        _must(heard == due, f"after the replay the canister has {len(heard)} of {len(due)} events")
        replays = len(self.canisters.registry.state.replays)
        yield (
            f"The canister was stopped while {len(due) - before} prices went out; its broadcaster"
            " died with them."
        )
        yield (
            f"It noticed the gap and asked: {replays} replays later it has all {len(due)}, in"
            " order, each once."
        )
        self.note("replay", heard, replays)

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
        found = surprises(world, originals)
        _must(settled and not found, f"the distributor left {found or 'work undone'}")
        sent = sum(answer == 200 for _, _, answer in world.endpoints[endpoint].got)
        on = {name: len(network.log) for name, network in networks.items()}
        _must(set(on.values()) == {len(originals)}, f"the networks hold {on}")
        yield (
            f"A distributor with two processes published the last {len(originals)} prices on"
            f" {', '.join(_NETWORKS)}."
        )
        yield (
            "fabric was down at first; now each network has each event once, and a subscriber was"
            f" told {sent} times."
        )
        self.note("distributor", on, sent, world.digest())

    def _heard(self) -> list[object]:
        return list(self.canisters.app(self.follower).data)


def _event(row: Row) -> tuple[str, Event]:
    """A published price as an event of the distributor, with its id."""
    name = "0x" + blake2_256(bytes(row.id)).hex()
    key = str(row.fields["key"])
    location = f"https://prices.example/{key}?hl={name}"
    return name, Event("PricePublished", location, ("prd",), key, name, "0x" + "5c" * 32)


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise TourFailed(f"the tour failed: {what}")


_TRACE: Final = "pubsub icrc72 trace demo --namespace org.example.price --event 12"
ACTS: Final = (
    (
        "Publish and subscribe over the relay chain (RFC-0160)",
        Tour.relay_chain,
        "pubsub step oracle",
    ),
    (
        "PRISM: identities in the events of that chain",
        Tour.prism,
        "pubsub serve --prism, then pubsub prism --help",
    ),
    ("ICRC-72: canisters subscribe to that chain", Tour.icrc72, _TRACE),
    ("ICRC-77: what a canister missed is replayed", Tour.replay, "pubsub icrc72 demo"),
    (
        "The distributor: the same event on three networks",
        Tour.distributor,
        "pubsub distributor demo",
    ),
)
"""Each act with its title and the command to try next."""


def take_tour() -> Result:
    """Play all acts, and print the digest of them. Raises `TourFailed`."""
    with closing(open_store(":memory:", "tour")) as log:
        tour = Tour(log)
        results = []
        for number, (title, act, further) in enumerate(ACTS, start=1):
            say(f"{number}. {title}")
            lines = []
            for line in act(tour):
                say(f"   {line}")
                lines.append(line)
            say(f"   try next: {callable_here(further)}", "")
            results.append({"act": title, "told": lines, "next": further})
        digest = hexed(blake2_256(b"".join((tour.chain_digest.value, *tour.parts))))
        say("the digest is one hash over all acts: the same on every machine")
        say(f"digest: {digest}")
        return Result({"acts": results, "digest": digest})

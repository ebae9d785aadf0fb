"""Stories with canisters: `python tests/canisters/campaign.py --cases 500`.

`python examples/canisters/build.py --collect` builds them for long runs. Each is a drawn story
(refusals, delays, deaths, pauses, upgrades). In its turn each role is played by a canister in
Motoko: publisher, subscriber, broadcaster (two of four), orchestrator, then all of them; everybody
else is emulated. They are upgraded amid it where the story upgrades. In the end each subscriber has
had every event from its first on, once, and in order where nobody was away.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from interchain_events.icrc72 import CanisterNetwork, RoleCanister, WasmCanister
from interchain_events.icrc72.broadcaster.core import Broadcaster
from interchain_events.icrc72.deployment import PubSub, deploy
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.canister import RUNNING, Canister
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.ic.wasm.canister import WasmLimits
from interchain_events.icrc72.keys import REPLAY
from interchain_events.icrc72.services import Codec
from interchain_events.icrc72.settings import Settings
from interchain_events.icrc72.stories import Maker, Surprise, Witness, begin, drawn, finish, step
from pubsub_emulator.primitives.draws import Draws

BUILT = Path(__file__).resolve().parents[2] / "build" / "canisters"
COLLECTED = BUILT.parent / "collected"
"""With heaps that are collected after each message, where they were built."""
IDS, NAT, WHO = (Codec(parse_types(text)) for text in ("(vec nat)", "(nat)", "(principal)"))
NOTHING = b"DIDL\0\0"
ROLES = ("Publisher", "Subscriber", "Broadcaster", "Orchestrator")
CASTS = (*((role,) for role in ROLES), ROLES)
PRICE = "org.example.price"
LIMITS = WasmLimits(memory_bytes=1 << 30)
"""Without `COLLECTED`, an orchestrator of a long story has a heap of 256 MiB."""
WARM_UP = 200
"""Rounds until everybody is registered."""
TRIES = 24
"""How often it is looked whether everything has come, fifty rounds apart."""


def built(role: str, first: Principal) -> WasmCanister:
    """A canister that was built, installed with the orchestrator; an orchestrator, with its first
    broadcaster.
    """
    folder = COLLECTED if COLLECTED.is_dir() else BUILT
    return WasmCanister((folder / f"{role}.wasm").read_bytes(), WHO.encode(first), LIMITS)


@dataclass
class Deployment(PubSub):
    """A deployment in which modules play some of the roles."""

    modules: dict[Principal, str] = field(default_factory=dict)

    def successor(self, who: Principal) -> Canister:
        """New code for what runs there."""
        role = self.modules.get(who)
        return super().successor(who) if role is None else built(role, self.orchestrator)


class Play:
    """A story in which the roles of `cast` are played by modules."""

    def __init__(self, seed: bytes, cast: Sequence[str]) -> None:
        self.cast, self.plan, self.draws = cast, drawn(seed), Draws(seed, "modules")
        self.modules: dict[Principal, str] = {}
        self.story = begin(self.plan, deployed=self._deployed)
        self.network, self.system = self.story.network, self.story.system
        there = (self.system.orchestrator, self.plan.settings)
        makers = (
            partial(Maker, *there, publications={PRICE: {REPLAY: True}}, subscriptions={}),
            partial(Witness, *there, publications={}, subscriptions={PRICE: {}}),
        )
        self.publisher, self.subscriber = (
            (
                self._created(self.network, subnet, role, self.system.orchestrator)
                if role in cast
                else self.network.create(subnet, made())
            )
            for subnet, (role, made) in enumerate(zip(ROLES, makers, strict=False))
        )

    def _created(
        self, network: CanisterNetwork, subnet: int, role: str, first: Principal
    ) -> Principal:
        who = network.create(subnet, built(role, first), controllers=(ANONYMOUS,))
        self.modules[who] = role
        return who

    def _deployed(self, network: CanisterNetwork, settings: Settings) -> PubSub:
        """An orchestrator, and two broadcasters on each subnet, of which the first may be a
        module.
        """
        me = network.next_id(0)
        if "Orchestrator" in self.cast:
            self._created(network, 0, "Orchestrator", me)
            system = Deployment(network, "orchestrator", me, settings, modules=self.modules)
        else:
            made = deploy(network, broadcasters=(), settings=settings)
            system = Deployment(
                network, made.kind, made.orchestrator, settings, modules=self.modules
            )
        for subnet in (0, 1, 0, 1):
            who, alone = (
                network.next_id(subnet),
                "Broadcaster" in self.cast and len(network.running()) < 3,
            )
            if "Orchestrator" in self.cast:
                network.submit(ANONYMOUS, me, "add_broadcaster", WHO.encode(who))
            else:
                system.registry.add_broadcaster(who)
            if alone:
                self._created(network, subnet, "Broadcaster", me)
                network.step(12)
            else:
                code: Canister = RoleCanister([Broadcaster(me, settings)])
                network.create(subnet, code)
                system.broadcasters.append(who)
        return system

    def tell(self) -> int:
        """Tell the story.

        Returns the number of events that the subscriber handled. Raises `Surprise`.
        """
        self.network.step(WARM_UP)
        finish(self.story, self._each_round)
        for _ in range(TRIES):  # an event after all others shows what is missing
            self._publish()
            for _ in range(50):
                step(self.story)
            had, last = self._had(), self._last()
            ordered = (
                had if self.plan.calm else sorted(had)
            )  # what comes at another exit may overtake
            if had and not self.story.upgrading and ordered == list(range(ordered[0], last + 1)):
                return len(had)
        raise Surprise(f"the subscriber had {had[:3]} … {had[-3:]} ({len(had)}) of {last}")

    def _each_round(self) -> None:
        if self.draws.below(100) < self.plan.load:
            self._publish()
        who = self.draws.choice(list(self.modules))
        upgrades = self.plan.upgrades and who not in self.story.paused and self.draws.one_in(40)
        if upgrades and self.network.status(who) == RUNNING:
            self.network.stop(who)
            self.story.upgrading[who] = None

    def _publish(self) -> None:
        method = "publish" if self.publisher in self.modules else PRICE
        self.network.submit(ANONYMOUS, self.publisher, method, NAT.encode(1))

    def _last(self) -> int:
        if self.publisher in self.modules:
            return int(
                NAT.decode(
                    self.network.query(ANONYMOUS, self.publisher, "published", NOTHING).data
                )[0]
            )
        publisher = self.system.app(self.publisher).publisher
        return 0 if publisher is None else publisher.published(PRICE)

    def _had(self) -> list[int]:
        if self.subscriber in self.modules:
            return list(
                IDS.decode(self.network.query(ANONYMOUS, self.subscriber, "ids", NOTHING).data)[0]
            )
        return [number for _, number in self.system.app(self.subscriber).data]


def main() -> int:
    """Play stories by number. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    surprises = events = 0
    for number in range(given.first, given.first + given.cases):
        cast = CASTS[number % len(CASTS)]
        try:
            events += Play(b"modules %d" % number, cast).tell()
        except Surprise as surprise:
            surprises += 1
            sys.stdout.write(f"story {number} ({', '.join(cast)}): {surprise}\n")
        if number % 10 == 9:
            sys.stdout.write(
                f"up to story {number}: {events:,} events handled, {surprises} surprises\n"
            )
            sys.stdout.flush()
    sys.stdout.write(f"{given.cases} stories, {events:,} events handled, {surprises} surprises\n")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())

"""Stories with canisters that were built: `python tests/canisters/campaign.py --cases 500`.

Each is a drawn story (refusals, delays, deaths, pauses, upgrades), in which a Motoko publisher and a Motoko subscriber
take part, beside emulated publishers and subscribers. All canisters of modules are upgraded amid it
where the story upgrades. In the end each subscriber has had every event from its first on, once and in order.
"""

import argparse
import sys
from pathlib import Path

from pubsub_emulator.collator.draws import Draws
from pubsub_emulator.icrc72.ic.candid.did import parse_types
from pubsub_emulator.icrc72.ic.candid.encode import Encoder
from pubsub_emulator.icrc72.ic.messaging import RUNNING, STOPPED
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.ic.wasm.canister import WasmCanister
from pubsub_emulator.icrc72.services import Codec
from pubsub_emulator.icrc72.stories import Surprise, begin, drawn, finish

BUILT = Path(__file__).resolve().parents[2] / "build" / "canisters"
IDS = Codec(parse_types("(vec nat)"))
NAT = Codec(parse_types("(nat)"))
WARM_UP = 120
"""Rounds until everybody is registered."""
TO_REST = 600


def play(seed: bytes) -> int:
    """Play one story. Returns the number of events that were handled. Raises `Surprise`."""
    plan, draws = drawn(seed), Draws(seed, "modules")
    story = begin(plan)
    network = story.network
    names: dict[Principal, str] = {}

    def made(name: str) -> WasmCanister:
        arg = Encoder(parse_types("(principal)")).encode(story.system.orchestrator)
        return WasmCanister((BUILT / f"{name}.wasm").read_bytes(), arg)

    for subnet, name in enumerate(("Publisher", "Subscriber")):
        names[network.create(subnet, made(name))] = name
    publisher = next(iter(names))
    upgrading: list[Principal] = []

    def each_round() -> None:
        if draws.below(100) < plan.load:
            network.submit(ANONYMOUS, publisher, "publish", NAT.encode(1))
        for who in [who for who in upgrading if network.status(who) == STOPPED]:
            upgrading.remove(who)
            if not network.upgrade(who, made(names[who])):
                raise Surprise(f"the upgrade of {names[who]} trapped")
            network.start(who)
        who = draws.choice(list(names))
        if plan.upgrades and draws.one_in(40) and network.status(who) == RUNNING:
            network.stop(who)
            upgrading.append(who)

    network.step(WARM_UP)
    finish(story, each_round)
    for _ in range(TO_REST):
        if upgrading:
            each_round()
        network.step()
    for _ in range(3):  # an event after all others shows what is missing
        network.submit(ANONYMOUS, publisher, "publish", NAT.encode(1))
        network.step(TO_REST // 3)
    last = NAT.decode(network.query(ANONYMOUS, publisher, "published", b"DIDL\0\0").data)[0]
    handled = 0
    for who, name in names.items():
        if who != publisher:
            had = list(IDS.decode(network.query(ANONYMOUS, who, "ids", b"DIDL\0\0").data)[0])
            if not had or had != list(range(had[0], last + 1)):
                raise Surprise(f"{name} had {had[:3]} … {had[-3:]} ({len(had)}) of {last}")
            handled += len(had)
    return handled


def main() -> int:
    """Play stories by number. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    surprises = events = 0
    for number in range(given.first, given.first + given.cases):
        try:
            events += play(b"modules %d" % number)
        except Surprise as surprise:
            surprises += 1
            sys.stdout.write(f"story {number}: {surprise}\n")
    sys.stdout.write(f"{given.cases} stories, {events:,} events handled by modules, {surprises} surprises\n")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())

"""Cheats with relay headers, on chains with a relay parent offset (UP-12, UP-15).

Such a chain stays some blocks behind the relay chain's tip, which may still change. A collator that
shows other headers could build on a block that is about to be abandoned.
"""

from collections.abc import Sequence
from dataclasses import replace

from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.collator.cheats.steps import (
    AddDescendant,
    CheatStep,
    DropDescendant,
    difference,
)
from pubsub_emulator.collator.cheats.strategy import Proposal, strategy
from pubsub_emulator.primitives import babe, schnorrkel
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.pallet_subscriber.plan import plan
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.runtime.parachain.descendants import authority_keys


def _shown(situation: Situation) -> tuple[Header, ...]:
    """Return the relay headers of the honest block."""
    return situation.honest.inherent.descendants


def _instead(situation: Situation, headers: Sequence[Header]) -> tuple[CheatStep, ...]:
    """Return the steps that show these relay headers instead of the honest ones.

    The proof has the authorities that these headers need.
    """
    steps: list[CheatStep] = [DropDescendant(0) for _ in _shown(situation)]
    steps += [AddDescendant(index, header.encode()) for index, header in enumerate(headers)]
    authorities = authority_keys(situation.spec, headers)
    if authorities != situation.authorities:
        walked = plan(
            situation.view,
            situation.relay.storage_root,
            situation.proof_of(situation.relay, authorities).nodes,
            situation.allowed,
            situation.calls_in(situation.messages),
            authorities=authorities,
        )
        steps += difference(situation.walked.taken, walked.taken)
    return tuple(steps)


@strategy(
    "cut-descendants",
    "build on a relay block that may still be abandoned",
    Verdict.BAD_DESCENDANTS,
)
def cut_descendants(situation: Situation, draws: Draws) -> Proposal:
    """Leave out one of the relay headers, or all of them."""
    headers = list(_shown(situation))
    if not headers:
        return None
    if draws.one_in(3):
        return _instead(situation, ())
    del headers[draws.below(len(headers))]
    return _instead(situation, headers)


@strategy(
    "swap-descendants",
    "show headers of the relay chain that are not its newest blocks",
    Verdict.BAD_DESCENDANTS,
)
def swap_descendants(situation: Situation, draws: Draws) -> Proposal:
    """Swap two relay headers, or show one of them twice."""
    headers = list(_shown(situation))
    if len(headers) < 2:
        return None
    index = draws.below(len(headers) - 1)
    if draws.one_in(2):
        headers[index + 1] = headers[index]
    else:
        headers[index], headers[index + 1] = headers[index + 1], headers[index]
    return _instead(situation, headers)


@strategy(
    "forge-descendant",
    "pretend that the relay chain went on with another block",
    Verdict.BAD_DESCENDANTS,
)
def forge_descendant(situation: Situation, draws: Draws) -> Proposal:
    """Change the last relay header, under its old seal or a stranger's, or without a seal."""
    headers = list(_shown(situation))
    if not headers:
        return None
    last = headers[-1]
    bare = replace(last, extrinsics_root=Hash(draws.take(32)), digest=last.digest[:-1])
    strangers = babe.seal(schnorrkel.sign(schnorrkel.pair(situation.stranger), bare.hash()))
    seals = draws.choice(((last.digest[-1],), (strangers,), ()))
    headers[-1] = replace(bare, digest=(*bare.digest, *seals))
    return _instead(situation, headers)


@strategy(
    "descendants-of-another-block",
    "pass off a chain of relay headers as that of the relay parent",
    Verdict.BAD_DESCENDANTS,
)
def descendants_of_another_block(situation: Situation, draws: Draws) -> Proposal:
    """Show the right number of relay headers, but beginning with an older relay block."""
    count = len(_shown(situation))
    root = situation.relay.storage_root
    others = [
        relay.headers[:count]
        for relay in situation.others
        if count and relay.storage_root != root and len(relay.headers) >= count
    ]
    return _instead(situation, draws.choice(others)) if others else None


@strategy(
    "another-offset",
    "choose how far a block is behind the relay chain's tip",
    Verdict.BAD_DESCENDANTS,
)
def another_offset(situation: Situation, draws: Draws) -> Proposal:
    """Show the relay headers of a smaller or a larger offset."""
    honest_count = len(_shown(situation))
    if not honest_count:
        return None
    known = situation.relay.headers
    others = [
        count
        for count in range(1, honest_count + 2)
        if count != honest_count and count <= len(known)
    ]
    if not others:
        return None
    return _instead(situation, known[: draws.choice(others)])

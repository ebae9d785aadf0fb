"""Changes which of a parachain's collators cheat, while the network runs."""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.collator.draws import MILLION
from pubsub_emulator.emulator.network.arguments import refuse
from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.emulator.network.parachain import Parachain


def next_collator(network: Network, chain: Parachain) -> int:
    """The index of the collator that authors first in the parachain's next turn: N mod n in relay block N."""
    block = network.number + 1
    while block % chain.pace.every:
        block += 1
    return block % len(chain.collators)


def make_cheat(
    network: Network, para: int, strategies: Sequence[str], collator: int | None = None, rate: int = MILLION
) -> int:
    """Make a collator try strategies in `rate` millionths of its turns. Returns its number, counted from 1.

    `collator` counts from 1; `None` means the one whose turn is next. Raises `UnknownParachain`, `BadRequest`.
    """
    chain = network.parachain(para)
    if not strategies:
        refuse("no strategy is named")
    for name in strategies:
        if name not in STRATEGIES:
            near = ", ".join(get_close_matches(name, STRATEGIES, n=3, cutoff=0))
            refuse(f"no strategy is called {name!r}; near to it are {near}")
    count = len(chain.collators)
    chosen = next_collator(network, chain) if collator is None else collator - 1
    if not 0 <= chosen < count:
        refuse(f"{chain.para} has {count} collators; a collator is a number from 1 to {count}, not {collator}")
    if not 0 <= rate <= MILLION:
        refuse(f"a rate is a share from 0 to 1, not {rate / MILLION}")
    chain.collators = tuple(
        replace(each, strategies=tuple(strategies), rate=rate) if at == chosen else each
        for at, each in enumerate(chain.collators)
    )
    return chosen + 1


def make_honest(network: Network, para: int) -> int:
    """Make all collators of a parachain honest. Returns their number. Raises `UnknownParachain`."""
    chain = network.parachain(para)
    chain.collators = tuple(replace(each, strategies=()) for each in chain.collators)
    return len(chain.collators)

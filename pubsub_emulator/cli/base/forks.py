"""States that a network continues from, as the command line names them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from pubsub_emulator.emulator.fork import NO_FORKS, Forks
from pubsub_emulator.primitives.types import U32_MAX
from pubsub_emulator.runtime.framework.fork import BadFork, Fork
from pubsub_emulator.runtime.framework.words import words


@contextmanager
def opened(relay: str | None, parachains: Sequence[str]) -> Iterator[Forks]:
    """Yield the states that chains continue from, open inside the `with` block.

    `relay` is the relay chain's source. `parachains` are texts like `PARA=SOURCE`.

    Raises `BadFork`, `ClientError`.
    """
    if relay is None and not parachains:
        yield NO_FORKS
        return
    # Importing the client's libraries takes a moment, so it waits until a node may be asked.
    from pubsub_emulator.client.fork import open_fork

    with ExitStack() as stack:
        fork = None if relay is None else stack.enter_context(open_fork(relay))
        parachain_forks: dict[int, Fork] = {}
        for text in parachains:
            name, _, source = text.partition("=")
            if not (name.isascii() and name.isdecimal() and int(name) <= U32_MAX and source):
                raise BadFork(f"--fork-para is PARA=SOURCE, such as 2000=state.json, not {text!r}")
            if int(name) in parachain_forks:
                raise BadFork(f"--fork-para: parachain {name} is given twice")
            parachain_forks[int(name)] = stack.enter_context(open_fork(source))
        yield Forks(fork, parachain_forks)


def forks_told(forks: Forks) -> Iterator[str]:
    """Yield a line for each forked chain, with the source and the root of the chain's state."""
    for chain, fork in forks.by_chain().items():
        yield f"{chain} continues from {fork.source}, state root {words(fork.root)}"

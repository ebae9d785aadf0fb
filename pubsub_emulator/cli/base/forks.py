"""States that a network continues from, as the command line names them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from pubsub_emulator.emulator.fork import NO_FORKS, Forks
from pubsub_emulator.primitives.types import U32_MAX
from pubsub_emulator.runtime.framework.fork import BadFork, Fork
from pubsub_emulator.runtime.framework.words import words


@contextmanager
def opened(relay: str | None, parachains: Sequence[str]) -> Iterator[Forks]:
    """The states at a relay chain's source and those of parachains, `PARA=SOURCE`.

    Raises `BadFork`, `ClientError`.
    """
    if relay is None and not parachains:
        yield NO_FORKS
        return
    from pubsub_emulator.client.fork import (
        open_fork,
    )  # not before a node may be asked: the library takes a moment

    with ExitStack() as stack:
        fork = None if relay is None else stack.enter_context(open_fork(relay))
        found: dict[int, Fork] = {}
        for text in parachains:
            name, _, source = text.partition("=")
            if not (name.isascii() and name.isdecimal() and int(name) <= U32_MAX and source):
                raise BadFork(f"--fork-para is PARA=SOURCE, such as 2000=state.json, not {text!r}")
            if int(name) in found:
                raise BadFork(f"--fork-para: parachain {name} is given twice")
            found[int(name)] = stack.enter_context(open_fork(source))
        yield Forks(fork, found)


def forks_told(forks: Forks) -> Iterator[str]:
    """One line per chain that continues from a state: where the state is from, and its root."""
    for chain, fork in forks.by_chain().items():
        yield f"{chain} continues from {fork.source}, state root {words(fork.root)}"

"""The relay chain's headers, which confirm the roots that inherents state.

Requests to nodes that several modules need are in this module as well.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.spark_audit.fetch.block import VALUES
from pubsub_emulator.spark_audit.fetch.endpoints import Endpoints
from pubsub_emulator.spark_audit.fetch.errors import WrongBlock
from pubsub_emulator.spark_audit.real_proofs.imported import RelayHeader, RelayProof
from pubsub_emulator.spark_audit.real_proofs.values import RawHeader

U = TypeVar("U")


class RelayHeaders:
    """Headers of relay parents from nodes of the relay chain.

    Without nodes, proofs stay without these headers.
    """

    def __init__(self, nodes: Endpoints | None) -> None:
        self._nodes = nodes
        self._known: dict[int, RelayHeader] = {}

    async def with_headers(self, proofs: Sequence[RelayProof]) -> list[RelayProof]:
        """Return the proofs with the headers of their relay parents.

        Raises `SourceLost`, `WrongBlock`.
        """
        nodes = self._nodes
        if nodes is None:
            return list(proofs)
        wanted = dict.fromkeys(int(proof.relay_parent) for proof in proofs)
        known = {number: self._known[number] for number in wanted if number in self._known}

        async def fetch_one(number: int) -> None:
            label = f"relay block {number}"
            block = await ask_hash(nodes, label, "chain_getBlockHash", number)
            header = await ask_header(nodes, block, label)
            if header.number != number:
                raise WrongBlock(f"{label} has the number {header.number}")
            known[number] = RelayHeader(header.hash, header.state_root)

        await each(fetch_one, [number for number in wanted if number not in known], nodes.width)
        # Only the headers of this range stay in memory: consecutive ranges can share a relay
        # parent.
        self._known = known
        return [replace(proof, relay_header=known[int(proof.relay_parent)]) for proof in proofs]


async def ask_header(nodes: Endpoints, wanted: Hash, label: str) -> RawHeader:
    """Return the header with a hash. `label` names the block in messages.

    Raises `SourceLost`, `WrongBlock`.
    """

    def check(url: str, answer: object) -> RawHeader:
        header = VALUES.header(f"{url}: {label}", answer)
        if header.hash != wanted:
            raise WrongBlock(
                f"{url}: {label} has the hash 0x{header.hash.hex()}, not 0x{wanted.hex()}"
            )
        return header

    return await nodes.ask(check, "chain_getHeader", f"0x{wanted.hex()}")


async def each(work: Callable[[U], Awaitable[None]], items: Iterable[U], width: int) -> None:
    """Do `work` for each item, at most `width` at a time.

    The first failure cancels the remaining work and is raised.
    """
    remaining = iter(items)

    async def run_items() -> None:
        for item in remaining:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(width):
                group.create_task(run_items())
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def ask_hash(
    nodes: Endpoints, label: str, method: str, *params: object, only: str | None = None
) -> Hash:
    """Ask a question whose answer is a hash. `label` names the block in messages.

    With `only`, the node with this URL is asked. Raises `SourceLost`, `WrongBlock`.
    """

    def check(url: str, answer: object) -> Hash:
        if answer is None:
            raise WrongBlock(f"{url}: {label} is not there")
        return VALUES.hash(f"{url}: the hash of {label}", answer)

    return await nodes.ask(check, method, *params, only=only)

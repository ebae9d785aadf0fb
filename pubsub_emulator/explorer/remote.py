"""The page of a running node: its newest blocks, read over JSON-RPC and executed again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Final, TypeVar

from pydantic import TypeAdapter

from pubsub_emulator.client import answers
from pubsub_emulator.client.errors import BadAnswer, NodeRefused
from pubsub_emulator.client.rpc import Rpc, connect
from pubsub_emulator.emulator.network.records import (
    AuthorityRecord,
    BlockRecord,
    CheckpointRecord,
    RelayRecord,
)
from pubsub_emulator.explorer.judged import judge_again
from pubsub_emulator.explorer.page import page_html
from pubsub_emulator.explorer.recorder import Recorder
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.types import Hash, ParaBlockNumber, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.parachain.block import Candidate
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES
from pubsub_emulator.runtime.parachain.validate import RelayContext
from pubsub_emulator.runtime.relay.paras import HEADS
from pubsub_emulator.runtime.rules import Rules

AT_ONCE: Final = 12
"""The maximum number of simultaneous requests."""
PAGE: Final = 512
"""The number of keys that are requested at a time."""
MOST_STATE: Final = 256 * 1_048_576
"""The maximum size of a parachain's state, in bytes."""
T = TypeVar("T")

Advance = Callable[[int, int | None], object]
"""Called with the number of finished relay blocks and of all."""


class Disagrees(PubsubError):
    """A node whose answers contradict each other or the result of executing its blocks."""


def page_of_node(url: str, blocks: int, advance: Advance, rules: Rules) -> tuple[str, int]:
    """Return the page of a node's newest `blocks` relay blocks, and their number.

    The number is smaller if the node has fewer blocks. Blocks of chains that name `rules` are
    executed by them.

    Raises `ClientError`, and `Disagrees` if the node's answers contradict each other.
    """
    return asyncio.run(_page(url.rstrip("/"), blocks, advance, rules=rules))


async def _page(url: str, blocks: int, advance: Advance, rules: Rules) -> tuple[str, int]:
    """Record the newest blocks of a node. Return their page and their number."""
    async with connect(url) as relay:
        reader = _Node(relay, url)
        best = await reader.header(None)
        first = max(best.number - blocks, 0)
        start = await reader.at(first)
        name = await reader.ask(answers.TEXT, "system_chain")
        recorder = Recorder(rules=rules)
        chains = [await reader.start(para, start, recorder) for para in await reader.paras(start)]
        if not chains:
            raise Disagrees(f"{url}: no parachain has a block at relay block {first}")
        parent = start
        for number in range(first + 1, best.number + 1):
            parent = await _relay_block(reader, recorder, chains, parent=parent, number=number)
            advance(number - first, best.number - first)
        description = f"Relay blocks {first + 1} to {best.number} of {url}, executed again."
        return page_html(recorder, name, description), best.number - first


class _Chain:
    """A parachain with header and state of the last block that was executed."""

    def __init__(self, para: ParaId, header: Header, state: State) -> None:
        self.para = para
        self.header = header
        self.state = state


async def _relay_block(
    reader: "_Node", recorder: Recorder, chains: list[_Chain], parent: Header, number: int
) -> Header:
    """Read a relay block, execute its candidates and record all of them. Return its header."""
    header = await reader.at(number)
    if header.parent_hash != parent.hash():
        problem = (
            f"relay block {number} does not follow block {number - 1}: the node reverted blocks"
        )
        raise Disagrees(f"{reader.url}: {problem}")
    candidate_lists = await _together(reader.candidates(chain.para, number) for chain in chains)
    records = []
    for chain, candidates in zip(chains, candidate_lists, strict=True):
        records += [
            await _judged(chain, candidate, number, rules=recorder.rules)
            for candidate in candidates
        ]
    newest_slot = max((record.slot_now for record in records), default=Slot(0))
    recorder.relay_block(
        RelayRecord(RelayBlockNumber(number), header.hash(), header.state_root, slot=newest_slot)
    )
    for record in records:
        recorder.candidate(record)
    return header


async def _judged(chain: _Chain, reported: "_Candidate", number: int, rules: Rules) -> BlockRecord:
    """Execute a candidate again and return its record.

    A valid block moves the chain on. Raises `Disagrees` if the node states another verdict.
    """
    candidate = Candidate.decode(reported.bytes)
    root = None if reported.relay_root is None else Hash(reported.relay_root)
    context = RelayContext(candidate.inherent.relay_parent_number, root, Slot(reported.slot_now))
    record = judge_again(
        chain.para,
        chain.header,
        chain.state,
        candidate=candidate,
        relay=context,
        included_at=number,
        strategy=reported.strategy,
        rules=rules,
    )
    verdict = None if record.refusal is None else record.refusal.verdict.value
    if verdict != reported.verdict:
        problem = (
            f"the node says {reported.verdict or 'valid'}, executing it gives {verdict or 'valid'}"
        )
        raise Disagrees(f"parachain {chain.para}, block {candidate.header.number}: {problem}")
    if record.outcome is not None and reported.status == "included":
        chain.header = candidate.header
        chain.state = record.outcome.state
    return record


class _Named(answers.Answer):
    """An entry of a list of candidates."""

    hash: answers.Bytes


class _Candidate(answers.Answer):
    """A candidate with the context in which it was judged, and the outcome."""

    bytes: answers.Bytes
    relay_root: answers.Hash | None
    slot_now: answers.Count
    strategy: answers.Text | None = None
    verdict: answers.Text | None
    status: answers.Text


_LISTED: Final[TypeAdapter[tuple[_Named, ...] | None]] = TypeAdapter(tuple[_Named, ...] | None)
_CANDIDATE: Final = TypeAdapter(_Candidate)
_PAGE: Final[TypeAdapter[tuple[answers.StorageChangeSet]]] = TypeAdapter(
    tuple[answers.StorageChangeSet]
)


class _Node:
    """Reads and verifies headers and blocks of a node."""

    def __init__(self, relay: Rpc, url: str) -> None:
        self._relay = relay
        self.url = url

    async def ask(
        self, kind: TypeAdapter[T], method: str, *params: object, rpc: Rpc | None = None
    ) -> T:
        """Ask the node and return the answer as a value of a type. Raises `ClientError`."""
        return answers.read(
            kind, await (rpc or self._relay).call(method, *params), f"{self.url}: {method}"
        )

    async def header(self, name: bytes | None) -> Header:
        """Return the relay header with a hash, `None` for the newest one, after checking it."""
        answer = await self.ask(
            answers.HEAD, "chain_getHeader", *([] if name is None else [hexed(name)])
        )
        try:
            header = answer.header()
        except ScaleError as error:
            raise BadAnswer(f"{self.url}: chain_getHeader: no header: {error}") from None
        if name is not None and header.hash() != name:
            raise Disagrees(
                f"{self.url}: the header of {hexed(name)} hashes to {hexed(header.hash())}"
            )
        return header

    async def at(self, number: int) -> Header:
        """Return the header of the relay block with this number."""
        name = await self.ask(answers.MAYBE_HASH, "chain_getBlockHash", number)
        if name is None:
            raise Disagrees(
                f"{self.url}: the node no longer keeps relay block {number}; draw fewer blocks"
            )
        return await self.header(name)

    async def paras(self, block: Header) -> list[ParaId]:
        """Return all parachains that have a block at a relay block, in ascending order."""
        keys = await self.ask(
            answers.KEYS, "state_getKeysPaged", hexed(HEADS.prefix), 1000, None, hexed(block.hash())
        )
        return sorted({ParaId(int.from_bytes(key[-4:], "little")) for key in keys})

    async def start(self, para: ParaId, block: Header, recorder: Recorder) -> _Chain:
        """Return a parachain at a relay block, and record its collators and its state.

        The state is read completely and compared with the root in the header.
        """
        raw = await self.ask(
            answers.BYTES, "state_getStorage", hexed(HEADS.key_for(para)), hexed(block.hash())
        )
        try:
            header = Header.decode(HEADS.codec.read(Reader(raw)))
        except ScaleError as error:
            raise BadAnswer(
                f"{self.url}: state_getStorage: the head of parachain {para}: {error}"
            ) from None
        async with connect(f"{self.url}/{para}") as rpc:
            state = await self._state(rpc, hexed(header.hash()))
        if state.root() != header.state_root:
            problem = f"the state of block {header.number} does not have the root in its header"
            raise Disagrees(f"{self.url}/{para}: {problem}")
        keys = tuple(AUTHORITIES.get(Storage(state)))
        recorder.authorities(AuthorityRecord(para, ParaBlockNumber(header.number), keys))
        recorder.checkpoint(CheckpointRecord(para, 0, header, state=state))
        if runtime_spec(Storage(state)).subscriptions:
            recorder.chains[para].subscribes = True
        return _Chain(para, header, state)

    async def candidates(self, para: ParaId, number: int) -> list[_Candidate]:
        """Return the candidates of a parachain that a relay block judged, in order."""
        try:
            answer = await self.ask(_LISTED, "pubsub_candidates", para, number)
            return [
                await self.ask(_CANDIDATE, "pubsub_candidate", hexed(entry.hash))
                for entry in answer or ()
            ]
        except NodeRefused as error:
            raise BadAnswer(f"{self.url}: this node does not report candidates: {error}") from error

    async def _state(self, rpc: Rpc, name: str) -> State:
        """Return a whole state, read by pages of keys.

        Raises `BadAnswer` if the keys do not ascend or the state is too large.
        """
        rows: dict[bytes, bytes | None] = {}
        after: bytes | None = None
        size = 0
        keys_of = partial(self.ask, answers.KEYS, "state_getKeysPaged", "0x", PAGE, rpc=rpc)
        while keys := await keys_of(None if after is None else hexed(after), name):
            ordered = keys if after is None else [after, *keys]
            if any(lower >= higher for lower, higher in pairwise(ordered)):
                raise BadAnswer(f"{self.url}: state_getKeysPaged: the keys do not ascend")
            (page,) = await self.ask(
                _PAGE, "state_queryStorageAt", [hexed(key) for key in keys], name, rpc=rpc
            )
            rows.update(page.changes)
            size += sum(len(key) + len(value or b"") for key, value in page.changes)
            if size > MOST_STATE:
                raise BadAnswer(f"{self.url}: a state of more than {MOST_STATE:,} bytes")
            after = keys[-1]
        state = State()
        state.apply(rows, {})
        return state


async def _together(work: Iterable[Awaitable[T]]) -> list[T]:
    """Return the results in order. At most `AT_ONCE` are awaited at the same time."""
    room = asyncio.Semaphore(AT_ONCE)

    async def limited(awaitable: Awaitable[T]) -> T:
        async with room:
            return await awaitable

    return await asyncio.gather(*(limited(awaitable) for awaitable in work))

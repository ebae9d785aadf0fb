"""An EVM chain with the contract of the events, behind the calls of its node, in this process.

Blocks are mined when a test says so and can be taken back. `answers` replaces the answer of a
method: a function of the true answer, or an exception that is raised.
"""

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import rlp
from eth_abi.abi import decode, encode

from interchain_events.distributor.adapter.evm.contract import IS_UNIQUE, TOPIC
from interchain_events.pallets.dome_events.global_id import global_id
from pubsub_emulator.client.errors import NodeRefused, NodeUnavailable

CONTRACT = "0x" + "c0" * 20


@dataclass
class Transaction:
    """A transaction that was sent: its sender, nonce, price and call."""

    nonce: int
    price: int
    to: str
    data: bytes
    raw: str


@dataclass
class EvmChain:
    """The chain and its node."""

    unique: bool = True
    chain_id: int = 1337
    base_fee: int | None = 7
    url: str = "http://node.example"
    up: bool = True
    answers: dict[str, Callable[[Any], Any] | Exception] = field(default_factory=dict)
    called: list[str] = field(default_factory=list)
    sent: list[Transaction] = field(default_factory=list)
    pool: dict[int, Transaction] = field(default_factory=dict)
    blocks: list[list[Transaction]] = field(default_factory=lambda: [[]])
    branch: int = 0
    branches: list[int] = field(default_factory=lambda: [0])
    heads: list[Any] = field(default_factory=list)

    async def __aexit__(self, *_: object) -> None:
        return

    @asynccontextmanager
    async def subscribe(self, *_: object) -> AsyncIterator[AsyncIterator[Any]]:
        async def all_heads() -> AsyncIterator[Any]:
            for head in self.heads:
                yield head
            raise NodeUnavailable("the connection was closed")

        yield all_heads()

    async def call(self, method: str, *params: Any) -> Any:
        self.called.append(method)
        if not self.up:
            raise NodeUnavailable("nobody listens")
        other = self.answers.get(method)
        if isinstance(other, Exception):
            raise other
        found = getattr(self, method)(*params)
        return other(found) if other is not None else found

    # what tests do

    def mine(self, *, most: int = 1000) -> None:
        """Append a block with the waiting transactions that it may contain."""
        block = []
        while len(block) < most and (
            found := self.pool.pop(self._count(len(self.blocks)) + len(block), None)
        ):
            block.append(found)
        self.blocks.append(block)
        self.branches.append(self.branch)

    def take_back(self, depth: int, *, drop: bool = False) -> None:
        """Replace the last blocks. Their transactions wait again, or are lost."""
        lost = [each for block in self.blocks[-depth:] for each in block]
        del self.blocks[-depth:]
        del self.branches[-depth:]
        self.branch += 1
        if not drop:
            self.pool |= {each.nonce: each for each in lost}

    def events(self) -> list[str]:
        """Return the ids in the log, in order."""
        return [each[1] for block in range(len(self.blocks)) for each in self._emitted(block)]

    def _emitted(self, block: int) -> list[tuple[Transaction, str]]:
        done: set[str] = set()
        found = []
        for at in range(block + 1):
            for each in self.blocks[at]:
                event_id = global_id(decode(_CALL, each.data[4:])[5])
                if not (self.unique and event_id in done) and at == block:
                    found.append((each, event_id))
                done.add(event_id)
        return found

    def _count(self, blocks: int) -> int:
        return sum(map(len, self.blocks[:blocks]))

    def _number(self, name: str) -> int:
        return len(self.blocks) - 1 if name in {"latest", "pending"} else int(name, 16)

    def _hash(self, number: int) -> str:
        return "0x" + hashlib.sha256(f"{self.branches[number]} {number}".encode()).hexdigest()

    # what the node answers

    def eth_chainId(self) -> str:  # noqa: N802
        return hex(self.chain_id)

    def eth_gasPrice(self) -> str:  # noqa: N802
        return hex(9)

    def eth_maxPriorityFeePerGas(self) -> str:  # noqa: N802
        return hex(2)

    def eth_getCode(self, address: str, _at: str) -> str:  # noqa: N802
        return "0x60" if address == CONTRACT else "0x"

    def eth_getBlockByNumber(self, name: str, _whole: object) -> Any:  # noqa: N802
        if name in {"safe", "finalized"}:
            raise NodeRefused("eth_getBlockByNumber", -32000, "unknown block")
        number = self._number(name)
        if number >= len(self.blocks):
            return None
        fee = {} if self.base_fee is None else {"baseFeePerGas": hex(self.base_fee)}
        return {"number": hex(number), "hash": self._hash(number), **fee}

    def eth_getTransactionCount(self, _account: str, name: str) -> str:  # noqa: N802
        count = self._count(self._number(name) + 1)
        while name == "pending" and count in self.pool:
            count += 1
        return hex(count)

    def eth_call(self, asked: dict[str, str], _at: str) -> str:
        if asked["data"] == "0x" + IS_UNIQUE.hex():
            return "0x" + f"{int(self.unique):064x}"
        return "0x" + "00" * 32

    def eth_sendRawTransaction(self, raw: str) -> str:  # noqa: N802
        data = bytes.fromhex(raw[2:])
        typed = data[0] == 2
        fields: Any = rlp.decode(bytes(data[1:] if typed else data))
        nonce, price, to, payload = (fields[at] for at in ((1, 3, 5, 7) if typed else (0, 1, 3, 5)))
        made = Transaction(
            int.from_bytes(nonce), int.from_bytes(price), "0x" + to.hex(), payload, raw
        )
        if made.nonce < self._count(len(self.blocks)):
            raise NodeRefused("eth_sendRawTransaction", -32000, "nonce too low")
        known = self.pool.get(made.nonce)
        if known is not None and known.raw == raw:
            raise NodeRefused("eth_sendRawTransaction", -32000, "already known")
        if known is not None and made.price < known.price * 11 // 10:
            raise NodeRefused(
                "eth_sendRawTransaction", -32000, "replacement transaction underpriced"
            )
        self.sent.append(made)
        self.pool[made.nonce] = made
        return "0x" + hashlib.sha256(data).hexdigest()

    def eth_getLogs(self, asked: dict[str, Any]) -> list[dict[str, Any]]:  # noqa: N802
        found = []
        index = 0
        for number in range(len(self.blocks)):
            for each, _ in self._emitted(number):
                publisher, author, entity, previous, kind, place, metadata = decode(
                    _CALL, each.data[4:]
                )
                data = encode(_DATA, (index, 1_700_000_000 + number, author, kind, place, metadata))
                index += 1
                if int(asked["fromBlock"], 16) <= number <= int(asked["toBlock"], 16):
                    topics = [TOPIC, *("0x" + one.hex() for one in (publisher, entity, previous))]
                    place_of = {"blockNumber": hex(number), "blockHash": self._hash(number)}
                    found.append(
                        {
                            "address": CONTRACT,
                            "topics": topics,
                            "data": "0x" + data.hex(),
                            **place_of,
                        }
                    )
        return found


_CALL = ("bytes32", "address", "bytes32", "bytes32", "string", "string", "string[]")
_DATA = ("uint256", "uint256", "address", "string", "string", "string[]")

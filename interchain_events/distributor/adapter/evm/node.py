"""An EVM node's JSON-RPC: the methods that a ledger needs, with limited and checked answers."""

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, StrictBool, TypeAdapter

from pubsub_emulator.client.answers import Answer, Bytes, Hash, read
from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.client.rpc import Rpc

MOST_GAS: Final = 30_000_000
"""The greatest estimate of gas that is believed."""
MOST_PRICE: Final = 10_000 * 10**9
"""The greatest price in wei for a unit of gas. A higher one of a node is refused, and no
transaction pays more."""

Finality = int | Literal["safe", "finalized"]
"""How final blocks are found: by the number of blocks on top of them, or by the node's name for the
newest final block."""


def _quantity(value: object) -> int:
    """Return the number in a JSON-RPC quantity."""
    if not isinstance(value, str) or not value.startswith("0x") or len(value) > 18:
        raise ValueError("a quantity is a string of 0x and at most 16 digits")
    return int(value, 16)


Quantity = Annotated[int, BeforeValidator(_quantity)]
Price = Annotated[Quantity, Field(le=MOST_PRICE)]
Address = Annotated[Bytes, Field(min_length=20, max_length=20)]


class Block(Answer):
    """A block."""

    number: Quantity
    hash: Hash
    base_fee_per_gas: Price | None = None
    """`None` on a chain without EIP-1559."""


class Log(Answer):
    """A log entry."""

    address: Address
    topics: tuple[Hash, ...]
    data: Bytes
    block_number: Quantity
    block_hash: Hash
    removed: StrictBool = False
    """Whether the entry is of a block that the chain no longer has."""


class Receipt(Answer):
    """The receipt of a transaction. Only that of a contract's creation is read."""

    contract_address: Address | None
    block_number: Quantity


_BYTES: Final[TypeAdapter[bytes]] = TypeAdapter(Bytes)
_QUANTITY: Final[TypeAdapter[int]] = TypeAdapter(Quantity)
_PRICE: Final[TypeAdapter[int]] = TypeAdapter(Price)
_GAS: Final[TypeAdapter[int]] = TypeAdapter(Annotated[Quantity, Field(le=MOST_GAS)])
_BLOCK: Final = TypeAdapter(Block | None)
LOGS: Final = TypeAdapter(tuple[Log, ...])
_RECEIPT: Final = TypeAdapter(Receipt | None)


class EvmNode:
    """An EVM node.

    The methods raise `ClientError` if the node does not answer, refuses, or answers wrongly.
    """

    def __init__(self, rpc: Rpc) -> None:
        self.rpc = rpc
        self.url = rpc.url

    async def chain_id(self) -> int:
        """Return the number of the node's chain."""
        return await self._quantity("eth_chainId")

    async def newest(self) -> Block:
        """Return the newest block."""
        found = await self.block("latest")
        if found is None:
            raise BadAnswer(f"{self.url}: the node has no block latest")
        return found

    async def final(self, finality: Finality) -> Block | None:
        """Return the newest final block, `None` if there is none yet."""
        if isinstance(finality, str):
            return await self.block(finality)
        newest = await self.newest()
        return newest if finality == 0 else await self.block(newest.number - finality)

    async def block(self, which: int | str) -> Block | None:
        """Return a block by its number or name, `None` if the node does not have it."""
        if isinstance(which, int) and which < 0:
            return None
        name = which if isinstance(which, str) else hex(which)
        found = read(
            _BLOCK,
            await self.rpc.call("eth_getBlockByNumber", name, False),
            f"{self.url}: block {name}",
        )
        if found is not None and isinstance(which, int) and found.number != which:
            raise BadAnswer(
                f"{self.url}: asked for block {which}, the node answered block {found.number}"
            )
        return found

    async def logs(self, contract: str, topic: str, first: int, last: int) -> tuple[Log, ...]:
        """Return a contract's entries of one topic, in order.

        `first` and `last` are block numbers, both inclusive.
        """
        params = {
            "address": contract,
            "topics": [topic],
            "fromBlock": hex(first),
            "toBlock": hex(last),
        }
        found = read(LOGS, await self.rpc.call("eth_getLogs", params), f"{self.url}: eth_getLogs")
        numbers = [first, *(log.block_number for log in found), last]
        if numbers != sorted(numbers):
            raise BadAnswer(f"{self.url}: eth_getLogs: entries of other blocks, or out of order")
        return found

    async def call(self, to: str, data: bytes, sender: str = "0x" + "00" * 20) -> bytes:
        """Return the result of a contract's function, called without a transaction.

        Raises `NodeRefused` with the contract's error if the contract refuses.
        """
        params = {"from": sender, "to": to, "data": "0x" + data.hex()}
        return read(
            _BYTES, await self.rpc.call("eth_call", params, "latest"), f"{self.url}: eth_call"
        )

    async def code(self, address: str) -> bytes:
        """Return the code at an address, empty if there is no contract."""
        return read(
            _BYTES,
            await self.rpc.call("eth_getCode", address, "latest"),
            f"{self.url}: eth_getCode",
        )

    async def receipt(self, transaction: str) -> Receipt | None:
        """Return the receipt of a transaction, `None` while it is in no block."""
        found = await self.rpc.call("eth_getTransactionReceipt", transaction)
        return read(_RECEIPT, found, f"{self.url}: eth_getTransactionReceipt")

    async def nonce(self, account: str, at: int | str) -> int:
        """Return the number of an account's transactions up to a block.

        `pending` includes those that wait for a block.
        """
        return await self._quantity(
            "eth_getTransactionCount", account, at if isinstance(at, str) else hex(at)
        )

    async def gas(self, sender: str, data: bytes) -> int:
        """Return the gas that a transaction needs which creates a contract."""
        params = {"from": sender, "data": "0x" + data.hex()}
        return read(
            _GAS, await self.rpc.call("eth_estimateGas", params), f"{self.url}: eth_estimateGas"
        )

    async def price(self, method: str) -> int:
        """Return the price by `eth_gasPrice` or `eth_maxPriorityFeePerGas`, in wei."""
        return read(_PRICE, await self.rpc.call(method), f"{self.url}: {method}")

    async def send(self, raw: bytes) -> None:
        """Send a signed transaction."""
        await self.rpc.call("eth_sendRawTransaction", "0x" + raw.hex())

    async def _quantity(self, method: str, *params: str) -> int:
        """Return the number that a method answers."""
        return read(_QUANTITY, await self.rpc.call(method, *params), f"{self.url}: {method}")

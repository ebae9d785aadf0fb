"""An EVM node's JSON-RPC: the methods that a ledger needs, with limited and checked answers."""

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, StrictBool, TypeAdapter

from pubsub_emulator.client.answers import Answer, Bytes, Hash, read
from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.client.rpc import Rpc

MOST_GAS: Final = 30_000_000
"""The greatest estimate of gas that is accepted from a node."""
MOST_PRICE: Final = 10_000 * 10**9
"""The greatest price in wei for a unit of gas. Higher prices of nodes are refused, and transactions
never pay more."""

Finality = int | Literal["safe", "finalized"]
"""The condition for a block to be final: the number of blocks on top of it, or the node's name for
the newest final block."""


def _quantity(value: object) -> int:
    """Return the number in a JSON-RPC quantity. Raises `ValueError`."""
    if not isinstance(value, str) or not value.startswith("0x") or len(value) > 18:
        raise ValueError("a quantity is a string of 0x and at most 16 digits")
    return int(value, 16)


Quantity = Annotated[int, BeforeValidator(_quantity)]
Price = Annotated[Quantity, Field(le=MOST_PRICE)]
Address = Annotated[Bytes, Field(min_length=20, max_length=20)]


class EvmBlock(Answer):
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
    """Whether the entry's block is no longer on the chain."""


class Receipt(Answer):
    """The receipt of a transaction. Only receipts of contract creations are read."""

    contract_address: Address | None
    block_number: Quantity


_BYTES: Final[TypeAdapter[bytes]] = TypeAdapter(Bytes)
_QUANTITY: Final[TypeAdapter[int]] = TypeAdapter(Quantity)
_PRICE: Final[TypeAdapter[int]] = TypeAdapter(Price)
_GAS: Final[TypeAdapter[int]] = TypeAdapter(Annotated[Quantity, Field(le=MOST_GAS)])
_BLOCK: Final = TypeAdapter(EvmBlock | None)
LOGS: Final = TypeAdapter(tuple[Log, ...])
_RECEIPT: Final = TypeAdapter(Receipt | None)


class EvmNode:
    """An EVM node.

    The methods raise `ClientError` if the node does not answer, refuses, or gives a wrong answer.
    """

    def __init__(self, rpc: Rpc) -> None:
        self.rpc = rpc
        self.url = rpc.url

    async def chain_id(self) -> int:
        """Return the number of the node's chain."""
        return await self._quantity("eth_chainId")

    async def newest(self) -> EvmBlock:
        """Return the newest block."""
        newest = await self.block("latest")
        if newest is None:
            raise BadAnswer(f"{self.url}: the node has no block latest")
        return newest

    async def final(self, finality: Finality) -> EvmBlock | None:
        """Return the newest final block, `None` if there is none yet."""
        if isinstance(finality, str):
            return await self.block(finality)
        newest = await self.newest()
        return newest if finality == 0 else await self.block(newest.number - finality)

    async def block(self, which: int | str) -> EvmBlock | None:
        """Return a block by its number or name, `None` if the node does not have it."""
        if isinstance(which, int) and which < 0:
            return None
        name = which if isinstance(which, str) else hex(which)
        # The last argument asks for the hashes of the transactions only.
        answer = await self.rpc.call("eth_getBlockByNumber", name, False)
        block = read(_BLOCK, answer, f"{self.url}: block {name}")
        if block is not None and isinstance(which, int) and block.number != which:
            raise BadAnswer(
                f"{self.url}: asked for block {which}, the node answered block {block.number}"
            )
        return block

    async def logs(self, contract: str, topic: str, first: int, last: int) -> tuple[Log, ...]:
        """Return a contract's log entries with a topic, in order.

        `first` and `last` are the numbers of the first and the last block.
        """
        params = {
            "address": contract,
            "topics": [topic],
            "fromBlock": hex(first),
            "toBlock": hex(last),
        }
        entries = read(LOGS, await self.rpc.call("eth_getLogs", params), f"{self.url}: eth_getLogs")
        numbers = [first, *(entry.block_number for entry in entries), last]
        if numbers != sorted(numbers):
            raise BadAnswer(f"{self.url}: eth_getLogs: entries of other blocks, or out of order")
        return entries

    async def call(self, to: str, data: bytes, sender: str = "0x" + "00" * 20) -> bytes:
        """Call a contract's function without a transaction, and return the result.

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
        """Return the receipt of a transaction, `None` until a block has the transaction."""
        answer = await self.rpc.call("eth_getTransactionReceipt", transaction)
        return read(_RECEIPT, answer, f"{self.url}: eth_getTransactionReceipt")

    async def nonce(self, account: str, block: int | str) -> int:
        """Return the number of an account's transactions up to a block.

        With `pending` as the block, transactions that wait for a block are included.
        """
        name = block if isinstance(block, str) else hex(block)
        return await self._quantity("eth_getTransactionCount", account, name)

    async def gas(self, sender: str, data: bytes) -> int:
        """Return the estimated gas of a transaction that creates a contract."""
        params = {"from": sender, "data": "0x" + data.hex()}
        return read(
            _GAS, await self.rpc.call("eth_estimateGas", params), f"{self.url}: eth_estimateGas"
        )

    async def price(self, method: str) -> int:
        """Return a price in wei. `method` is `eth_gasPrice` or `eth_maxPriorityFeePerGas`."""
        return read(_PRICE, await self.rpc.call(method), f"{self.url}: {method}")

    async def send(self, raw: bytes) -> None:
        """Send a signed transaction."""
        await self.rpc.call("eth_sendRawTransaction", "0x" + raw.hex())

    async def _quantity(self, method: str, *params: str) -> int:
        """Return the number that a method answers."""
        return read(_QUANTITY, await self.rpc.call(method, *params), f"{self.url}: {method}")

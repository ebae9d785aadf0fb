"""An EVM node's JSON-RPC: the few methods that a ledger needs, their answers bounded and checked."""

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, StrictBool, TypeAdapter

from pubsub_emulator.client.answers import Answer, Bytes, Hash, read
from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.client.rpc import Rpc

MOST_GAS: Final = 30_000_000
MOST_PRICE: Final = 10_000 * 10**9
"""Wei for a unit of gas. A node that says more is not believed, and no transaction pays more."""

Finality = int | Literal["safe", "finalized"]
"""The blocks on top of a final block, or the name by which the node has its newest final block."""


def _quantity(value: object) -> int:
    if not isinstance(value, str) or not value.startswith("0x") or len(value) > 18:
        raise ValueError("a quantity is a string of 0x and at most 16 digits")
    return int(value, 16)


Quantity = Annotated[int, BeforeValidator(_quantity)]
Price = Annotated[Quantity, Field(le=MOST_PRICE)]
Address = Annotated[Bytes, Field(min_length=20, max_length=20)]


class Block(Answer):
    """A block; `base_fee_per_gas` is `None` where fees are as before EIP-1559."""

    number: Quantity
    hash: Hash
    base_fee_per_gas: Price | None = None


class Log(Answer):
    """A log entry."""

    address: Address
    topics: tuple[Hash, ...]
    data: Bytes
    block_number: Quantity
    block_hash: Hash
    removed: StrictBool = False


class Receipt(Answer):
    """The receipt of a transaction; it is read for the one that makes a contract only."""

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
    """A node. Methods raise `ClientError`."""

    def __init__(self, rpc: Rpc) -> None:
        self.rpc = rpc
        self.url = rpc.url

    async def chain_id(self) -> int:
        """The number of the chain that the node is of."""
        return await self._quantity("eth_chainId")

    async def newest(self) -> Block:
        """The newest block."""
        found = await self.block("latest")
        if found is None:
            raise BadAnswer(f"{self.url}: the node has no block latest")
        return found

    async def final(self, finality: Finality) -> Block | None:
        """The newest final block; `None` if there is none yet."""
        if isinstance(finality, str):
            return await self.block(finality)
        newest = await self.newest()
        return newest if finality == 0 else await self.block(newest.number - finality)

    async def block(self, which: int | str) -> Block | None:
        """A block by its number or name; `None` if the node has none."""
        if isinstance(which, int) and which < 0:
            return None
        name = which if isinstance(which, str) else hex(which)
        found = read(_BLOCK, await self.rpc.call("eth_getBlockByNumber", name, False), f"{self.url}: block {name}")
        if found is not None and isinstance(which, int) and found.number != which:
            raise BadAnswer(f"{self.url}: asked for block {which}, the node answered block {found.number}")
        return found

    async def logs(self, contract: str, topic: str, first: int, last: int) -> tuple[Log, ...]:
        """The entries of a contract in some blocks, both inclusive, in order."""
        params = {"address": contract, "topics": [topic], "fromBlock": hex(first), "toBlock": hex(last)}
        found = read(LOGS, await self.rpc.call("eth_getLogs", params), f"{self.url}: eth_getLogs")
        numbers = [first, *(log.block_number for log in found), last]
        if numbers != sorted(numbers):
            raise BadAnswer(f"{self.url}: eth_getLogs: entries of other blocks, or out of order")
        return found

    async def call(self, to: str, data: bytes, sender: str = "0x" + "00" * 20) -> bytes:
        """The result of calling a contract without a transaction; a refusal has the contract's error."""
        params = {"from": sender, "to": to, "data": "0x" + data.hex()}
        return read(_BYTES, await self.rpc.call("eth_call", params, "latest"), f"{self.url}: eth_call")

    async def code(self, address: str) -> bytes:
        """The code at an address; empty where there is no contract."""
        return read(_BYTES, await self.rpc.call("eth_getCode", address, "latest"), f"{self.url}: eth_getCode")

    async def receipt(self, transaction: str) -> Receipt | None:
        """The receipt of a transaction, `None` while it is in no block."""
        found = await self.rpc.call("eth_getTransactionReceipt", transaction)
        return read(_RECEIPT, found, f"{self.url}: eth_getTransactionReceipt")

    async def nonce(self, account: str, at: int | str) -> int:
        """The transactions of an account up to a block, or with those that wait (`pending`)."""
        return await self._quantity("eth_getTransactionCount", account, at if isinstance(at, str) else hex(at))

    async def gas(self, sender: str, data: bytes) -> int:
        """The gas that a transaction needs that makes a contract."""
        params = {"from": sender, "data": "0x" + data.hex()}
        return read(_GAS, await self.rpc.call("eth_estimateGas", params), f"{self.url}: eth_estimateGas")

    async def price(self, method: str) -> int:
        """The price by `eth_gasPrice` or `eth_maxPriorityFeePerGas`, in wei."""
        return read(_PRICE, await self.rpc.call(method), f"{self.url}: {method}")

    async def send(self, raw: bytes) -> None:
        """Hand over a signed transaction."""
        await self.rpc.call("eth_sendRawTransaction", "0x" + raw.hex())

    async def _quantity(self, method: str, *params: str) -> int:
        return read(_QUANTITY, await self.rpc.call(method, *params), f"{self.url}: {method}")

"""The ledger of an EVM chain: events of one contract, read from final blocks.

Only the log is trusted, so receipts of publications are not read. A publication is done when its
event is in a final block. Its transaction is over when a final block has used its nonce. Until then
it is stored, its nonce is not given to another transaction, and it is sent again if it is stuck or
the node has dropped it.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import re
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from interchain_events.database.errors import StoreError
from interchain_events.distributor.adapter.evm.account import (
    EvmAccount,
    Fees,
    keccak256,
    usual_fees,
)
from interchain_events.distributor.adapter.evm.contract import (
    IS_UNIQUE,
    TOPIC,
    call_data,
    creation,
    gas_of,
    place_of,
    read_entry,
    refusal,
)
from interchain_events.distributor.adapter.evm.node import EvmBlock, EvmNode, Finality
from interchain_events.distributor.adapter.ledger import Ledger, Published
from interchain_events.distributor.core.messages import LogPage, No, Unknown
from interchain_events.distributor.event import Event
from interchain_events.distributor.once import Store
from interchain_events.pallets.dome_events.global_id import global_id
from pubsub_emulator.client.errors import BadAnswer, ClientError, NodeRefused

log = logging.getLogger("pubsub.adapter")

CONTRACTS: Final = "evm-contracts"
"""The table of the address and first block of each created contract, by network."""
TRANSACTIONS: Final = "evm-transactions"
"""The prefix of the names of the tables of transactions."""
POLL_SECONDS: Final = 0.5
"""The wait between two questions for new blocks."""
HEADS_SECONDS: Final = 5.0
"""The longest wait between two questions for new blocks if the node announces them."""
FINAL_SECONDS: Final = 60.0
"""How long a publication waits for a final block. Its transaction is pursued after that, too."""
MOST_SENT: Final = 256
"""The greatest number of transactions that wait for a final block."""
MOST_SPAN: Final = 10_000
"""The greatest number of blocks in one request for log entries."""
MOST_READINGS: Final = 4096
"""The greatest number of readings. Beyond it, every second one of the older half is forgotten."""
_KNOWN: Final = re.compile("already known|^known transaction", re.IGNORECASE)
"""The messages with which nodes refuse a transaction that they already have."""


@dataclass(frozen=True, slots=True)
class EvmSettings:
    """The settings of a chain."""

    contract: str | None = None
    """The contract's address, `None` to create one."""
    first: int = 0
    """A block before the contract's first event."""
    chain_id: int | None = None
    """`None` accepts any chain."""
    unique: bool = True
    """Whether the contract refuses an id that it already has."""
    finality: Finality = "finalized"
    price: int | None = None
    """The price of legacy transactions in wei, `None` for the usual fees."""
    stuck: float = 30.0
    """The seconds after which a transaction is sent again."""


class _Reading(NamedTuple):
    """A block up to which the log has been read."""

    number: int
    hash: bytes
    length: int
    """The number of notices in the log up to this block."""


@dataclass
class _Sent:
    """A transaction that is not in a final block yet."""

    id: str
    """The event's global id."""
    nonce: int
    data: bytes
    gas: int
    fees: Fees
    sent_at: float
    """The time of the event loop's clock at which it was last sent."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the transaction is over."""


class EvmLedger(Ledger):
    """The ledger of a contract behind a node. Use `open_ledger` to create one."""

    def __init__(
        self,
        node: EvmNode,
        account: EvmAccount,
        settings: EvmSettings,
        store: Store,
        *,
        contract: str,
        chain_id: int,
    ) -> None:
        super().__init__()
        self.contract = contract
        self.chain_id = chain_id
        self._node = node
        self._account = account
        self._settings = settings
        self._store = store
        self._readings: list[_Reading] = []
        """Blocks up to which the log has been read, oldest first. Their hashes show whether the
        chain has changed."""
        self._span = MOST_SPAN
        """The number of blocks in the next request for log entries. It adapts to the node's
        limit."""
        self._reading = asyncio.Lock()
        """Held while blocks are read, because `publish`, `read` and `_keep_up` all read them."""
        self._signing = asyncio.Lock()
        """Held from the choice of a nonce until its transaction has been sent, so that no other
        transaction gets the same nonce."""
        self._head = asyncio.Event()
        """Set when the node announces a block."""
        self._sent: dict[str, _Sent] = {}
        """Transactions that are not over, by global id."""
        self._logged = ""
        """The last message that was logged about the node. It is not logged again."""
        self._rows = f"{TRANSACTIONS}:{contract}"
        """The table with the transactions of this contract, by nonce."""
        for nonce, text in store.rows(self._rows):
            event_id, data, gas, price, tip = json.loads(text)
            self._sent[event_id] = _Sent(
                event_id,
                int(nonce),
                bytes.fromhex(data),
                gas=gas,
                fees=Fees(price, tip),
                # Transactions of an earlier process count as stuck at once, because the node may
                # have dropped them.
                sent_at=float("-inf"),
            )
        self._tasks = [asyncio.create_task(self._keep_up())]
        if node.url.startswith("ws"):
            self._tasks.append(asyncio.create_task(self._follow()))

    # publishing

    async def publish(self, event: Event) -> Published | No | Unknown:
        """Send a transaction, and wait until a final block has the event."""
        event_id = global_id(event.data_location)
        try:
            async with asyncio.timeout(FINAL_SECONDS):
                await self._update()
                if event_id in self._times:
                    return Published(self._times[event_id], new=False)
                async with self._signing:
                    sent = self._sent.get(event_id) or await self._send(event_id, event)
                if isinstance(sent, No | Unknown):
                    return sent
                if sent is None:
                    # The contract has the id already, in a block that is not final yet.
                    while event_id not in self._times:
                        await self.wait(len(self._log), FINAL_SECONDS)
                else:
                    await sent.over.wait()
            if event_id in self._times:
                return Published(self._times[event_id], new=sent is not None)
            return await self._failure(event)
        except ClientError as error:
            return Unknown(str(error)[:300])
        except TimeoutError:
            return Unknown(f"no final block has the event after {FINAL_SECONDS:.0f} s")

    async def _failure(self, event: Event) -> No | Unknown:
        """Return the reason why a transaction is over but its event is not in the log.

        The call is repeated without a transaction, and then fails with the contract's error.
        """
        try:
            await self._node.call(
                self.contract, call_data(event, self._account.address), self._account.address
            )
        except NodeRefused as error:
            reason = refusal(error.data)
            if reason not in {"", "AlreadyPublished"}:
                return No(reason)
        return Unknown("the transaction failed, or another one has its nonce")

    async def _send(self, event_id: str, event: Event) -> _Sent | No | Unknown | None:
        """Sign, store and send the transaction of an event.

        Returns `None` if the contract has the id already, possibly in a block that is not final.
        """
        if event_id in self._times:
            return None
        if len(self._sent) >= MOST_SENT:
            return Unknown(f"{MOST_SENT} transactions wait for a final block")
        if self._settings.unique and any(await self._node.call(self.contract, place_of(event_id))):
            return None
        pending = await self._node.nonce(self._account.address, "pending")
        used = {sent.nonce for sent in self._sent.values()}
        nonce = next(number for number in itertools.count(pending) if number not in used)
        data = call_data(event, self._account.address)
        sent = _Sent(
            event_id,
            nonce,
            data,
            gas=gas_of(data),
            fees=await usual_fees(self._node, self._settings.price),
            sent_at=asyncio.get_running_loop().time(),
        )
        # Stored before it is sent, so that another process continues with it if this one dies now.
        self._remember(sent)
        self._sent[event_id] = sent
        try:
            await self._node.send(self._signed(sent))
        except NodeRefused as error:
            if not _KNOWN.search(error.message):
                self._forget(sent)
                raise
        except ClientError as error:
            # There was no answer, but the transaction may have arrived.
            self._log_error(str(error))
        return sent

    def _signed(self, sent: _Sent) -> bytes:
        """Return the signed bytes of a transaction."""
        return self._account.signed(
            self.chain_id,
            sent.nonce,
            sent.gas,
            fees=sent.fees,
            call=(self.contract, sent.data),
        )

    def _remember(self, sent: _Sent) -> None:
        """Store a transaction."""
        text = json.dumps([sent.id, sent.data.hex(), sent.gas, *sent.fees])
        self._store.transact(lambda tx: tx.put(self._rows, str(sent.nonce), text))

    def _forget(self, sent: _Sent) -> None:
        """Delete a transaction that is over, and wake the publication that waits for it."""
        self._store.transact(lambda tx: tx.delete(self._rows, str(sent.nonce)))
        del self._sent[sent.id]
        sent.over.set()

    # pursuing sent transactions

    async def _keep_up(self) -> None:
        """Read new blocks and pursue the sent transactions, until the task is cancelled."""
        wait = HEADS_SECONDS if self._node.url.startswith("ws") else POLL_SECONDS
        while True:
            try:
                await self._update()
                await self._pursue()
                self._logged = ""
            except (ClientError, StoreError) as error:
                self._log_error(str(error))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._head.wait(), wait)
            self._head.clear()

    async def _follow(self) -> None:
        """Wake `_keep_up` at each new block, and subscribe again after a lost connection."""
        while True:
            try:
                async with self._node.rpc.subscribe(
                    "eth_subscribe", "eth_unsubscribe", "newHeads"
                ) as heads:
                    async for _ in heads:
                        self._head.set()
            except ClientError as error:
                self._log_error(str(error))
            await asyncio.sleep(POLL_SECONDS)

    async def _pursue(self) -> None:
        """Forget transactions that are over, and send old ones again.

        Blocks include transactions in the order of their nonces. So only the first one can be stuck
        by its fees, and it is sent with higher ones unless the price is fixed. The others wait for
        it, and are sent again only if the node no longer has them.
        """
        if not self._sent:
            return
        used = 0
        if self._readings:
            used = await self._node.nonce(self._account.address, self._readings[-1].number)
        for sent in list(self._sent.values()):
            if sent.id in self._times or sent.nonce < used:
                self._forget(sent)
        now = asyncio.get_running_loop().time()
        left = sorted(self._sent.values(), key=lambda sent: sent.nonce)
        stuck = [sent for sent in left if now - sent.sent_at >= self._settings.stuck]
        if not stuck:
            return
        usual = await usual_fees(self._node, self._settings.price)
        pending = await self._node.nonce(self._account.address, "pending")
        for sent in stuck:
            is_first = sent is left[0]
            if is_first and self._settings.price is None:
                sent.fees = sent.fees.raised(usual)
            if is_first or sent.nonce >= pending:
                await self._send_again(sent, now)

    async def _send_again(self, sent: _Sent, now: float) -> None:
        """Store and send a transaction again, and log a refusal of the node."""
        sent.sent_at = now
        self._remember(sent)
        try:
            await self._node.send(self._signed(sent))
        except NodeRefused as error:
            if not _KNOWN.search(error.message):
                self._log_error(f"transaction {sent.nonce} sent again: {error}")

    def _log_error(self, error: str) -> None:
        """Log an error of the node, unless it is the one that was logged last."""
        if error != self._logged:
            self._logged = error
            log.warning("the node fails", extra={"fields": {"error": error[:300]}})

    # reading

    async def _update(self) -> None:
        """Read the final blocks that have not been read yet. Raises `ClientError`."""
        async with self._reading:
            head = await self._node.final(self._settings.finality)
            if head is None:
                return
            await self._drop_reverted(head)
            begin = self._readings[-1].number + 1 if self._readings else self._settings.first
            while begin <= head.number:
                last = min(begin + self._span - 1, head.number)
                block = head if last == head.number else await self._node.block(last)
                if await self._take(begin, block):
                    begin = last + 1

    async def _drop_reverted(self, head: EvmBlock) -> None:
        """Forget the readings of blocks that the chain no longer has, and their notices.

        Raises `BadAnswer` if the node now belongs to another chain.
        """
        while self._readings:
            last = self._readings[-1]
            block = head if head.number == last.number else await self._node.block(last.number)
            if block is not None and block.hash == last.hash:
                return
            if await self._node.chain_id() != self.chain_id:
                # This is a mistake of configuration and not a rewind.
                raise BadAnswer(
                    f"{self._node.url}: the node is of another chain than {self.chain_id} now"
                )
            self._unread()

    def _unread(self) -> None:
        """Forget the last reading and its notices."""
        self._readings.pop()
        self._shrink(self._readings[-1].length if self._readings else 0)

    async def _take(self, begin: int, block: EvmBlock | None) -> bool:
        """Read the log entries from block number `begin` to `block`. Returns false on a refusal.

        If the node refuses, the next request is for fewer blocks. Raises `ClientError` if it even
        refuses a single one, or gives a wrong answer.
        """
        if block is None:
            raise BadAnswer(f"{self._node.url}: a block below the final one is missing")
        try:
            entries = await self._node.logs(self.contract, TOPIC, begin, block.number)
        except NodeRefused:
            if self._span == 1:
                raise
            self._span //= 2
            return False
        # The entries are those of this block's branch only if the block has not changed meanwhile.
        after = await self._node.block(block.number)
        if after is None or after.hash != block.hash:
            raise BadAnswer(f"{self._node.url}: block {block.number} changed while it was read")
        appended = "" if self._settings.unique else str(self.chain_id)
        fresh = [
            read_entry(entry, self.contract, f"{self._node.url}: eth_getLogs", appended=appended)
            for entry in entries
        ]
        for number, notice in enumerate(fresh, len(self._log) + 1):
            # Some nodes omit entries. The part that was read before may lack some, too, so it is
            # read again.
            if notice.number != number:
                if self._readings:
                    self._unread()
                raise BadAnswer(
                    f"{self._node.url}: event {notice.number - 1} of the contract, not event"
                    f" {number - 1}"
                )
        self._readings.append(_Reading(block.number, block.hash, len(self._log) + len(fresh)))
        if len(self._readings) > MOST_READINGS:
            # After a rewind, the log is read from the last remaining reading that is still valid.
            del self._readings[: MOST_READINGS // 2 : 2]
        self._span = min(self._span * 2, MOST_SPAN)
        if fresh:
            self._grow(fresh)
        return True

    async def read(self, after: int, limit: int) -> LogPage | None:
        """Return at most `limit` notices after a number, `None` if the node does not answer."""
        try:
            await self._update()
        except ClientError as error:
            self._log_error(str(error))
            return None
        return await super().read(after, limit)

    async def close(self) -> None:
        """End the tasks and close the connection."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(ClientError):
            await self._node.rpc.__aexit__(None, None, None)


async def open_ledger(
    network: str, node: EvmNode, account: EvmAccount, settings: EvmSettings, store: Store
) -> EvmLedger:
    """Open the ledger of a network.

    The contract is that of the settings, or else the one that the store knows for the network, or
    else a new one.

    Raises `ClientError` if the chain, the contract or the final blocks do not fit the settings.
    """
    chain_id = await node.chain_id()
    if settings.chain_id is not None and chain_id != settings.chain_id:
        raise ClientError(
            f"{node.url}: the node is of chain {chain_id}, not of chain {settings.chain_id}"
        )
    try:
        await node.final(settings.finality)
    except NodeRefused as error:
        raise ClientError(f"{node.url}: the node does not tell its final blocks: {error}") from None
    contract = settings.contract
    first = settings.first
    if contract is None:
        known = store.transact(lambda tx: tx.get(CONTRACTS, network))
        if known:
            contract, first = json.loads(known)
        else:
            contract, first = await _create(node, account, settings, chain_id=chain_id)
        store.transact(lambda tx: tx.put(CONTRACTS, network, json.dumps([contract, first])))
    if not await node.code(contract):
        raise ClientError(f"{node.url}: chain {chain_id} has no contract at {contract}")
    try:
        unique = any(await node.call(contract, IS_UNIQUE))
    except NodeRefused:
        # The public contract does not have this function.
        unique = False
    if unique != settings.unique:
        behaviour = "takes each id once" if unique else "takes an id twice"
        raise ClientError(
            f"{node.url}: the contract at {contract} {behaviour}; the settings say otherwise"
            " (--not-unique)"
        )
    settings = replace(settings, contract=contract, first=first, chain_id=chain_id)
    return EvmLedger(node, account, settings, store, contract=contract, chain_id=chain_id)


async def _create(
    node: EvmNode, account: EvmAccount, settings: EvmSettings, chain_id: int
) -> tuple[str, int]:
    """Create a contract and wait until it is in a block.

    Returns the contract's address and the block's number. Raises `ClientError`.
    """
    data = creation(unique=settings.unique)
    gas = await node.gas(account.address, data)
    fees = await usual_fees(node, settings.price)
    nonce = await node.nonce(account.address, "pending")
    # The estimate may be too low when the transaction is included.
    transaction = account.signed(chain_id, nonce, gas * 3 // 2, fees=fees, call=("", data))
    await node.send(transaction)
    for _ in range(int(FINAL_SECONDS / POLL_SECONDS)):
        receipt = await node.receipt("0x" + keccak256(transaction).hex())
        if receipt is not None and receipt.contract_address is not None:
            return "0x" + receipt.contract_address.hex(), receipt.block_number
        await asyncio.sleep(POLL_SECONDS)
    raise ClientError(
        f"{node.url}: the transaction that makes the contract is in no block after"
        f" {FINAL_SECONDS:.0f} s"
    )

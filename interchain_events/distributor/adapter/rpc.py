"""The ledger of a Substrate chain with pallet `DomeEvents`, behind a node's JSON-RPC (ID-50).

Events are read from final blocks and decoded with the metadata of their blocks. A publication is a
signed extrinsic, and is done when a block includes it. If the node's chain no longer has a block
that was read, the log is read again from the last block that it still has.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterable
from typing import Final, NamedTuple

from interchain_events.distributor.adapter.chain import notice_of, publication_of
from interchain_events.distributor.adapter.ledger import Ledger, Published
from interchain_events.distributor.core.messages import LogPage, No, Unknown
from interchain_events.distributor.event import Event, Notice
from interchain_events.pallets.dome_events import PALLET, DomeEvents, Error, EventDOMEv1
from interchain_events.pallets.dome_events.global_id import global_id
from pubsub_emulator.client.errors import ClientError, NodeRefused
from pubsub_emulator.client.extrinsics import signed_extrinsic
from pubsub_emulator.client.node import DecodedEvent, SubstrateNode
from pubsub_emulator.client.rpc import Rpc
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.framework.calls import EncodedCall, encode_call
from pubsub_emulator.runtime.framework.dispatch import Call

log = logging.getLogger("pubsub.adapter")

POLL_SECONDS: Final = 0.3
"""The wait between two questions for final blocks."""
INCLUDED_SECONDS: Final = 60.0
"""How long a publication waits for a block that includes its extrinsic."""


class _Block(NamedTuple):
    """A final block that has been read."""

    number: int
    hash: bytes
    notices: tuple[Notice, ...]


class RpcLedger(Ledger):
    """The ledger of a chain behind a node.

    `seed` is the Ed25519 secret of the account that publishes.
    """

    def __init__(self, network: str, rpc: Rpc, seed: bytes) -> None:
        super().__init__()
        self._network = network
        self._rpc = rpc
        self._node = SubstrateNode(rpc)
        self._seed = seed
        self._blocks: list[_Block] = []
        """All blocks that have been read, from block 1 on."""
        self._reading = asyncio.Lock()
        """Held while blocks are read, because `publish`, `read` and `wait` all read them."""
        self._signing = asyncio.Lock()
        """Held from the choice of a nonce until its extrinsic is in a block, so that no other
        extrinsic gets the same nonce."""

    # publishing

    async def publish(self, event: Event) -> Published | No | Unknown:
        """Submit an event as an extrinsic, and wait until it is in a block."""
        event_id = global_id(event.data_location)
        try:
            async with asyncio.timeout(INCLUDED_SECONDS):
                if await self._update() and event_id in self._times:
                    return Published(self._times[event_id], new=False)
                async with self._signing:
                    extrinsic = await self._signed(event)
                    methods = ("author_submitAndWatchExtrinsic", "author_unwatchExtrinsic")
                    async with self._rpc.subscribe(*methods, "0x" + extrinsic.hex()) as updates:
                        block = await _including_block(updates)
                if block is None:
                    return Unknown("the extrinsic left the pool")
                return await self._outcome(block, event_id)
        except NodeRefused as error:
            return Unknown(f"the node refused the extrinsic: {error}")
        except (ClientError, TimeoutError) as error:
            return Unknown(str(error) or "no answer in time")

    async def _signed(self, event: Event) -> bytes:
        """Return the signed extrinsic that publishes an event."""
        arguments = tuple(publication_of(event, self._network))
        encoded = encode_call(
            DomeEvents(self._network), Call(PALLET.name, "emit_new_event", arguments)
        )
        call = EncodedCall(PALLET.name, "emit_new_event", arguments, encoded)
        return await signed_extrinsic(self._node, self._seed, call)

    async def _outcome(self, block: bytes, event_id: str) -> Published | No | Unknown:
        """Return the result of a publication whose extrinsic is in a block.

        The block has the event or the pallet's error. If it has an error but the pallet has the id,
        somebody else has published it before.
        """
        events = await self._node.events(block)
        now = await self._node.timestamp(block) or 0
        for event in events:
            notice = _notice(event, now, block)
            if notice is not None and notice.id == event_id:
                return Published(now // 1000, new=True)
        key = encode_bytes(event_id.encode())
        if await self._node.item(block, PALLET.name, "Published", key) is not None:
            return Published(self._times.get(event_id, 0), new=False)
        reasons = [
            _reason(event.fields.get("dispatch_error"))
            for event in events
            if (event.pallet, event.name) == ("System", "ExtrinsicFailed")
        ]
        if reasons:
            return No(", ".join(reasons))
        return Unknown("the block has neither the event nor a failure")

    # reading

    async def _update(self) -> bool:
        """Read the final blocks that have not been read yet. Returns whether the node answered."""
        async with self._reading:
            try:
                head = await self._node.header(await self._node.finalized_head())
                await self._drop_reverted(head.number)
                for number in range(len(self._blocks) + 1, head.number + 1):
                    await self._take(number)
            except ClientError as error:
                log.warning("the node does not answer", extra={"fields": {"error": str(error)}})
                return False
        return True

    async def _drop_reverted(self, head: int) -> None:
        """Remove the blocks that the chain no longer has, and their notices.

        `head` is the number of the last final block.
        """
        while self._blocks:
            last = self._blocks[-1]
            if last.number <= head and await self._node.block_hash(last.number) == last.hash:
                return
            del self._blocks[-1]
            self._shrink(len(self._log) - len(last.notices))

    async def _take(self, number: int) -> None:
        """Read one final block."""
        block = await self._node.block_hash(number)
        if block is None:
            return
        now = await self._node.timestamp(block) or 0
        events = await self._node.events(block)
        candidates = (_notice(event, now, block) for event in events)
        notices = tuple(notice for notice in candidates if notice is not None)
        self._blocks.append(_Block(number, block, notices))
        self._grow(notices)

    async def read(self, after: int, limit: int) -> LogPage | None:
        """Return at most `limit` notices after a number, `None` if the node does not answer."""
        return await super().read(after, limit) if await self._update() else None

    async def wait(self, after: int, seconds: float) -> None:
        """Wait until the log has a notice after a number, at most for `seconds`."""
        end = asyncio.get_running_loop().time() + seconds
        while len(self._log) <= after and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(POLL_SECONDS)
            await self._update()

    async def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(ClientError):
            await self._rpc.__aexit__(None, None, None)


async def _including_block(updates: AsyncIterable[object]) -> bytes | None:
    """Return the hash of the block that includes an extrinsic, `None` if it left the pool."""
    async for update in updates:
        status = update if isinstance(update, dict) else {update: None}
        for name in ("inBlock", "finalized"):
            if name in status:
                return bytes.fromhex(str(status[name])[2:])
        if not status.keys().isdisjoint({"invalid", "dropped", "usurped"}):
            return None
    return None


def _notice(event: DecodedEvent, now: int, block: bytes) -> Notice | None:
    """Return the notice of an event of the pallet, `None` for any other event.

    `now` is the time of the event's block in ms, `block` the block's hash.
    """
    if (event.pallet, event.name) != (PALLET.name, "EventDOMEv1"):
        return None
    fields = event.fields
    iss = fields["iss"]
    emitted = EventDOMEv1(
        event_type=_bytes(fields["event_type"]),
        data_location=_bytes(fields["data_location"]),
        relevant_metadata=[_bytes(value) for value in fields["relevant_metadata"]],
        entity_id=_bytes(fields["entity_id"]),
        previous_entity_hash=_bytes(fields["previous_entity_hash"]),
        iss=None if iss is None else _bytes(iss),
        network=_bytes(fields["network"]),
        author=AccountId(_bytes(fields["author"])),
        index=int(fields["index"]),
    )
    return notice_of(emitted, now, block)


def _reason(error: object) -> str:
    """Return a dispatch error as text. An error of the pallet is given by its name."""
    module = error.get("Module") if isinstance(error, dict) else None
    if isinstance(module, dict) and module.get("index") == PALLET.index:
        number = _bytes(module["error"])[0]
        names = {member.value: member.name for member in Error}
        return f"{PALLET}::{names.get(number, number)}"
    return str(error)[:100]


def _bytes(value: object) -> bytes:
    """Return bytes, which the decoder represents as bytes or as hexadecimal text."""
    return value if isinstance(value, bytes) else bytes.fromhex(str(value).removeprefix("0x"))

"""Acts on a relay chain and its parachains with signed extrinsics, and reads what came of them.

Nothing but `chain_*`, `state_*`, `author_*` and `system_accountNextIndex` is called. Child tries and their roots
are read through proofs that are checked against the header of the block.
"""

import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Self

from pydantic import TypeAdapter

from pubsub_emulator.client import answers
from pubsub_emulator.client.conform.mapping import Mapping
from pubsub_emulator.client.decode import decode
from pubsub_emulator.client.encode import Encoded, encode_call
from pubsub_emulator.client.errors import BadAnswer, NodeUnavailable
from pubsub_emulator.client.extrinsics import Signer, development_signer, signed_by
from pubsub_emulator.client.live_state import BlockingNode, state_of
from pubsub_emulator.client.metadata import Enum
from pubsub_emulator.client.node import DecodedEvent, SubstrateNode
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.scale import encode_bytes, encode_compact
from pubsub_emulator.runtime.framework.calls import EncodedCall
from pubsub_emulator.runtime.framework.storage import State

_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 1.0
Event = tuple[str, dict[str, Any]]


class _Extrinsics(answers.Answer):
    extrinsics: tuple[str, ...]


class _Block(answers.Answer):
    block: _Extrinsics


_BODY: Final = TypeAdapter(_Block)


@dataclass(frozen=True, slots=True)
class Included:
    """An extrinsic in a block: its error (`Pallet.Error` or `BadOrigin`), or `None`, and the pallet's events of it."""

    number: int
    block: bytes
    error: str | None
    events: tuple[Event, ...]


class Chain:
    """One chain of the node."""

    def __init__(self, url: str, patience: float) -> None:
        self.client = BlockingNode(url)
        self.node = SubstrateNode(self.client.rpc)
        self._patience = patience

    def best(self) -> int:
        """The number of the best block."""
        return self.client.run(self.node.header(self.client.run(self.node.best_head()))).number

    def block(self, number: int) -> bytes:
        """The hash of a block. Raises `BadAnswer` if there is none."""
        found = self.client.run(self.node.block_hash(number))
        if found is None:
            raise BadAnswer(f"{self.client.url}: the node has no block {number}")
        return found

    def events(self, number: int) -> list[DecodedEvent]:
        """The events of a block."""
        return self.client.run(self.node.events(self.block(number)))

    def item(self, number: int, pallet: str, name: str, *keys: bytes) -> Any:
        """A decoded storage item after a block."""
        return self.client.run(self.node.item(self.block(number), pallet, name, *keys))

    def state(self, number: int) -> State:
        """The state after a block, read through checked proofs."""
        return state_of(self.client, str(number)).state

    def constant(self, pallet: str, name: str) -> Any:
        """A constant of a pallet, or `None`."""
        metadata = self.client.run(self.node.metadata(self.block(self.best())))
        found = metadata.pallets[pallet].constants.get(name) if pallet in metadata.pallets else None
        return None if found is None else decode(metadata, found.type, found.value)

    def call(self, pallet: str, name: str, arguments: dict[str, object]) -> Encoded:
        """A call, encoded by the chain's metadata."""
        return encode_call(self.client.run(self.node.metadata(self.block(self.best()))), pallet, name, arguments)

    def by_root(self, call: Encoded) -> Encoded:
        """A call through `Sudo`."""
        return self.call("Sudo", "sudo", {"call": call})

    def submit(self, signer: Signer, call: Encoded) -> tuple[int, list[DecodedEvent]]:
        """Send a call and wait for its block; returns the number and the events of the extrinsic."""
        raw = self.client.run(signed_by(self.node, signer, EncodedCall("", "", (), call)))
        looked = self.best()
        self.client.ask("author_submitExtrinsic", hexed(raw))
        end, pause = time.monotonic() + self._patience, _PAUSE
        while time.monotonic() < end:
            while looked < self.best() and time.monotonic() < end:
                looked += 1
                said = self.client.ask("chain_getBlock", hexed(self.block(looked)))
                body = answers.read(_BODY, said, f"{self.client.url}: chain_getBlock").block.extrinsics
                if hexed(raw) in body:
                    phase = f"extrinsic {body.index(hexed(raw))}"
                    return looked, [event for event in self.events(looked) if event.phase == phase]
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise NodeUnavailable(f"{self.client.url}: an extrinsic is in no block after {self._patience} s")

    def error(self, found: object) -> str:
        """The name of a dispatch error."""
        if not isinstance(found, dict):
            return str(found)
        ((kind, body),) = found.items()
        if kind != "Module":
            return f"{kind}.{body}"
        metadata = self.client.run(self.node.metadata(self.block(self.best())))
        for pallet in metadata.pallets.values():
            errors = None if pallet.errors is None else metadata.types.get(pallet.errors)
            if pallet.index == body["index"] and isinstance(errors, Enum):
                variant = errors.variants.get(body["error"][0])
                return f"{pallet.name}.{variant.name if variant else body['error'][0]}"
        return str(found)


class Driver:
    """A relay chain and parachains under one mapping; a context manager."""

    def __init__(self, url: str, mapping: Mapping, paras: dict[int, str]) -> None:
        self.mapping = mapping
        self._stack = ExitStack()
        self.relay = self._open(url)
        base = url.rstrip("/")
        wanted = {mapping.publisher, mapping.system, *paras}
        self.paras = {para: self._open(paras.get(para, f"{base}/{para}")) for para in sorted(wanted)}
        self.manager, self.stranger = development_signer(mapping.manager), development_signer(mapping.stranger)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def _open(self, url: str) -> Chain:
        chain = Chain(url, self.mapping.patience)
        self._stack.callback(chain.client.close)
        return chain

    # Acts

    def do(self, name: str, *, by: Signer | None = None, root: bool = False, **arguments: object) -> Included:
        """A call of the pallet on the relay chain, by the manager unless told otherwise."""
        pallet, named = self.mapping.pallet, {self.mapping.name(key): value for key, value in arguments.items()}
        return self.relay_call(pallet, self.mapping.name(name), named, by=by, root=root)

    def relay_call(
        self, pallet: str, name: str, arguments: dict[str, object], *, by: Signer | None = None, root: bool = False
    ) -> Included:
        """Any call on the relay chain; by root through `Sudo.sudo`."""
        call = self.relay.call(pallet, name, arguments)
        if root:
            call = self.relay.by_root(call)
        number, events = self.relay.submit(by or self.manager, call)
        return Included(number, self.relay.block(number), self._error(self.relay, events), self._ours(events))

    def publish(self, para: int, entries: Sequence[tuple[bytes, bytes, int]]) -> Included:
        """Publish by the parachain's call, or by a message; the relay block is that of the effect, or of the refusal.

        `error` is `Parachain: …` where the parachain's call itself fails, else as of `send`.
        """
        how = self.mapping.publish
        if how.by == "message":
            return self.send(para, self.message(entries), keys={key for key, _, _ in entries})[0]
        call = self.paras[para].call(how.pallet, how.call, {how.argument: list(map(list, entries))})
        return self._sent(para, call, {key for key, _, _ in entries}, 1)[0]

    def message(self, entries: Sequence[tuple[bytes, bytes, int]]) -> bytes:
        """A message of XCM v5 that publishes."""
        head = bytes((self.mapping.instruction,))
        parts = (head + key + encode_bytes(value) + ttl.to_bytes(4, "little") for key, value, ttl in entries)
        return b"\5" + encode_compact(len(entries)) + b"".join(parts)

    def send(self, para: int, *messages: bytes, keys: Collection[bytes] = ()) -> list[Included]:
        """Send upward messages in one block of a parachain, and what became of each on the relay chain.

        `error` is `None`, `incomplete`, why it was not processed (`BadFormat`, …), or `nothing`.
        """
        how, chain = self.mapping.message, self.paras[para]
        others = {name: Encoded(unhex(text)) for name, text in how.others.items()}
        sent = messages if how.wrapped else map(Encoded, messages)
        calls = [chain.call(how.pallet, how.call, {how.argument: each, **others}) for each in sent]
        call = calls[0] if len(calls) == 1 else chain.call("Utility", "batch_all", {"calls": calls})
        return self._sent(para, chain.by_root(call) if how.root else call, keys, len(messages))

    def _sent(self, para: int, call: Encoded, keys: Collection[bytes], count: int) -> list[Included]:
        """Submit a parachain's call, and find what became of its messages on the relay chain."""
        chain, since = self.paras[para], self.relay.best()
        failed = self._error(chain, chain.submit(self.manager, call)[1])
        if failed is not None:
            return [Included(since, b"", f"Parachain: {failed}", ())] * count
        found: list[Included] = []
        last = since
        for _ in range(self.mapping.delay):
            while last < min(self.relay.best(), since + self.mapping.delay):
                last += 1
                found += self._outcomes(para, keys, last)
                if len(found) >= count:
                    return found
            self.step()
        return found + [Included(last, self.relay.block(last), "nothing", ())] * (count - len(found))

    def _outcomes(self, para: int, keys: Collection[bytes], number: int) -> list[Included]:
        """What became of a parachain's messages in a relay block; of one with other traffic, of that with `keys`."""
        events = self.relay.events(number)
        ours, block = self._ours(events), self.relay.block(number)
        name, key = self.mapping.name("DataPublished"), self.mapping.name("key")
        if para != self.mapping.publisher and keys:
            said = any(each[0] == name and each[1].get(key) in keys for each in ours)
            return [Included(number, block, None, ours)] if said else []
        mine = (each for each in events if each.pallet == "MessageQueue" and each.fields.get("origin"))
        return [
            Included(number, block, _refusal(each), ours)
            for each in mine
            if str(each.fields["origin"]).find(f"{{'Para': {para}}}") >= 0
        ]

    def step(self, count: int = 1) -> int:
        """Let the relay chain build blocks, with a stranger's remark in each; returns the best number."""
        for _ in range(count):
            self.relay.submit(self.stranger, self.relay.call("System", "remark", {"remark": b"conform"}))
        return self.relay.best()

    def until(self, number: int) -> None:
        """Let the relay chain build blocks up to a number."""
        for _ in range(number - self.relay.best()):
            if self.relay.best() < number:
                self.step()

    # Reads

    def child(self, number: int, para: int) -> dict[bytes, bytes]:
        """All entries of a publisher's child trie after a relay block, through proofs."""
        return dict(self.relay.state(number).child_entries(self.child_key(para)))

    def root(self, number: int, para: int) -> bytes | None:
        """The child root of a publisher in the top trie after a relay block, through a proof."""
        return self.relay.state(number).child_root(self.child_key(para))

    def child_key(self, para: int) -> bytes:
        """The key of a publisher's child trie (PS-1)."""
        return self.mapping.child_prefix.encode() + para.to_bytes(4, "little")

    def item(self, number: int, name: str, *keys: bytes) -> Any:
        """A storage item of the pallet after a relay block."""
        return self.relay.item(number, self.mapping.pallet, self.mapping.name(name), *keys)

    def constant(self, name: str) -> Any:
        """A constant of the pallet, or `None`."""
        return self.relay.constant(self.mapping.pallet, self.mapping.name(name))

    def events(self, number: int) -> tuple[Event, ...]:
        """The pallet's events of a relay block."""
        return self._ours(self.relay.events(number))

    def _ours(self, events: Sequence[DecodedEvent]) -> tuple[Event, ...]:
        return tuple((each.name, each.fields) for each in events if each.pallet == self.mapping.pallet)

    def _error(self, chain: Chain, events: Sequence[DecodedEvent]) -> str | None:
        for event in events:
            if event.pallet == "System" and event.name == "ExtrinsicFailed":
                return chain.error(event.fields["dispatch_error"])
            if event.pallet == "Sudo" and event.name == "Sudid":
                result = event.fields.get("sudo_result")
                if isinstance(result, dict) and "Err" in result:
                    return chain.error(result["Err"])
        return None


def _refusal(event: DecodedEvent) -> str | None:
    """Why a message had no effect, or not its whole one."""
    if event.name == "Processed":
        return None if event.fields.get("success") else "incomplete"
    error = event.fields.get("error", event.name)
    return next(iter(error)) if isinstance(error, dict) else str(error)

"""The session over a node: its connections, and chains and states as the node tells and proves them."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Self

from pubsub_emulator.cli.session.command import CommandError
from pubsub_emulator.cli.session.session import key, number
from pubsub_emulator.client.live_state import state_of
from pubsub_emulator.client.node import SubstrateNode
from pubsub_emulator.client.rpc import Rpc, connect
from pubsub_emulator.emulator.fork import Fork
from pubsub_emulator.emulator.scenario.model import published_key
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, runtime_spec
from pubsub_emulator.runtime.relay.paras import HEADS

RELAY = "relay"
_NAMED = 64
"""Keys of each publisher that are looked for by the names that scenarios give them."""
_PAGE = 1000
_CHAIN_WANTED = "a chain is `relay` or a parachain's id"


@dataclass(frozen=True, slots=True)
class _Asked:
    """One chain of the node, for reading its state."""

    remote: "Remote"
    chain: str

    @property
    def url(self) -> str:
        """Where the node is, for errors."""
        return self.remote.url if self.chain == RELAY else f"{self.remote.url}/{self.chain}"

    def ask(self, method: str, *params: object) -> Any:
        """What a method answers. Raises `ClientError`."""
        return self.remote.ask(method, *params, chain=self.chain)


@dataclass(frozen=True, slots=True)
class RemoteChain:
    """A parachain with its newest state, read on demand and verified by its root."""

    para: ParaId
    fork: Fork

    @property
    def state(self) -> State:
        """Its newest state."""
        return self.fork.state

    def spec(self) -> RuntimeSpec:
        """Its runtime."""
        return runtime_spec(Storage(self.fork.state))


@dataclass(frozen=True, slots=True)
class Kept:
    """A moment that the node keeps under an id of its own."""

    id: str
    number: int
    root: str


@dataclass(slots=True)
class Remote:
    """A node at a ws:// or http:// URL; a context, which raises `ClientError` where nobody answers."""

    url: str
    over: bool = False
    """Whether the user has asked to leave."""
    name: str = ""
    names: dict[PubsubKey, str] = field(default_factory=dict)
    """Keys that the user spoke of by name."""
    wanted: dict[ParaId, tuple[int, dict[int, list[str]]]] = field(default_factory=dict)
    """Subscriptions that were ordered, by the spec version that has them."""
    kept: dict[str, Kept] = field(default_factory=dict)
    """Snapshots by the names that the user gave, oldest first."""
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    _open: dict[str, Rpc] = field(default_factory=dict)
    _states: dict[str, Fork] = field(default_factory=dict)
    _guessed: dict[bytes, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.url = self.url.rstrip("/")

    def __enter__(self) -> Self:
        try:
            self.name = str(self.ask("system_chain"))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        for rpc in self._open.values():
            self._runner.run(rpc.__aexit__(None, None, None))
        self._runner.close()

    def where(self) -> str:
        """What a prompt shows."""
        return f"{self.name} {self.number}"

    @property
    def number(self) -> int:
        """The best block's height."""
        return int(self.ask("chain_getHeader")["number"], 16)

    # The node

    def ask(self, method: str, *params: object, chain: str = RELAY) -> Any:
        """What a method answers; `chain` is `relay` or a parachain's id."""
        return self._runner.run(self._rpc(chain).call(method, *params))

    def node(self, chain: str) -> SubstrateNode:
        """A chain for what its metadata tells."""
        return SubstrateNode(self._rpc(chain))

    def run(self, work: Any) -> Any:
        """What a coroutine gives."""
        return self._runner.run(work)

    def _rpc(self, chain: str) -> Rpc:
        path = "" if chain == RELAY else f"/{number(chain, _CHAIN_WANTED)}"
        if path not in self._open:
            rpc = connect(self.url + path)
            self._runner.run(rpc.__aenter__())
            self._open[path] = rpc
        return self._open[path]

    # Chains

    def paras(self) -> list[ParaId]:
        """Every parachain that has a block."""
        keys = self.ask("state_getKeysPaged", hexed(HEADS.prefix), _PAGE)
        return sorted(ParaId(int.from_bytes(bytes.fromhex(key[-8:]), "little")) for key in keys)

    def known(self, para: int) -> ParaId:
        """A parachain's id. Raises `CommandError` where there is none of that id."""
        if ParaId(para) not in (paras := self.paras()):
            raise CommandError(f"there is no parachain {para}; there are {', '.join(map(str, paras))}")
        return ParaId(para)

    def fork(self, chain: str) -> Fork:
        """A chain's best block with its state. Raises `ClientError`; reading it may raise `StateUnavailable`."""
        best = str(self.ask("chain_getBlockHash", chain=chain))
        held = self._states.get(chain)
        if held is None or hexed(held.block) != best:
            held = self._states[chain] = state_of(_Asked(self, chain), best)
        return held

    @property
    def relay_state(self) -> State:
        """The relay chain's newest state."""
        return self.fork(RELAY).state

    def storage(self, chain: str) -> Storage:
        """Read access to a chain's newest state. Raises `CommandError`."""
        if chain != RELAY:
            self.known(number(chain, _CHAIN_WANTED))
        return Storage(self.fork(chain).state)

    def chain(self, para: int) -> RemoteChain:
        """A parachain. Raises `CommandError`."""
        return RemoteChain(self.known(para), self.fork(str(para)))

    def chains(self, text: str | None, *, subscribers: bool = False) -> list[RemoteChain]:
        """The parachain named, or all of them."""
        return [self.chain(para) for para in self.listed(text, subscribers=subscribers)]

    def listed(self, text: str | None, *, subscribers: bool = False) -> list[ParaId]:
        """The id named, or all of them; those that subscribe to something alone."""
        if text is not None:
            return [self.known(number(text, "a parachain's id is a whole number"))]
        paras = self.paras()
        return [para for para in paras if not subscribers or self.ask("pubsub_subscriptions", para)["items"]]

    # Keys

    def key(self, text: str) -> PubsubKey:
        """A key by name or in hex; names are remembered to show keys by. Raises `CommandError`."""
        return key(text, self.names)

    def key_name(self, key: bytes) -> str:
        """A key by the name it was made from, if that is known."""
        if not self._guessed:
            self._guessed = {
                published_key(para, index): f"{para}/{index}" for para in self.paras() for index in range(_NAMED)
            }
        return self.names.get(PubsubKey(key)) or self._guessed.get(key) or hexed(key)

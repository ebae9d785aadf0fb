"""A session: the network of one node, which commands step, attack and inspect.

It takes lines and returns pages. It uses no terminal and no clock. The caller shows the pages. A
caller that stops taking them interrupts the command after the last whole block. From Python:

    >>> session = Session.of(load_bundled("demo"))
    >>> for page in session.execute("step 5"):
    ...     print(page)

The node is in this process, or `Session.at(URL)`: commands, help and pages are the same.
"""

import shlex
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self, TypeVar

from pydantic import TypeAdapter

from pubsub_emulator.client.answers import (
    FLAG,
    HASH,
    HEAD,
    MAYBE_BYTES,
    MAYBE_HASH,
    TEXT,
    Head,
    read,
)
from pubsub_emulator.client.errors import BadAnswer, NodeRefused
from pubsub_emulator.emulator.fork import NO_FORKS, Forks
from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.near import near_to
from pubsub_emulator.files.pages import Shown, made_safe
from pubsub_emulator.files.shown import safe
from pubsub_emulator.node.local import HISTORY
from pubsub_emulator.node.rpc.errors import DEVELOPMENT, INVALID_PARAMS, METHOD_NOT_FOUND
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.pubsub import KEY_LENGTH, key_from_name
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.framework.system import EVENTS, ExtrinsicFailed
from pubsub_emulator.runtime.framework.words import words
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, decode_spec, runtime_spec
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.session import answers
from pubsub_emulator.session.answers import ParachainStatus, RelayBlockOutcome, Setting
from pubsub_emulator.session.command import CommandError, find, hexadecimal, number, split_line
from pubsub_emulator.session.node_api import RELAY, Deposited, InProcess, NodeApi

T = TypeVar("T")

NO_FACTS: Final = (
    "this node was not started by `pubsub serve`: only events, storage and headers are available"
)


@dataclass(frozen=True, slots=True)
class ChainState:
    """A parachain with its newest state."""

    para: ParaId
    state: State

    def spec(self) -> RuntimeSpec:
        """Return the runtime that is in force. Raises `ScaleError`."""
        return runtime_spec(self.state.top)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A state of the network: its blocks, and the commands that led to them."""

    number: int
    """The height of the newest relay block."""
    heads: Mapping[str, tuple[int, bytes]]
    """The height and hash of every chain's newest block."""
    journal: tuple[tuple[int, str], ...]
    """The commands, each with the height of the relay block after which it was executed."""
    id: str | None = None
    """The name under which the node keeps the state, if it does."""


class Session:
    """Commands over the network of a node."""

    def __init__(self, node: NodeApi, rules: Rules = SHIPPED) -> None:
        """Begin a session over a node. Raises `ClientError` if no node answers."""
        self.rules = rules
        """The rules by which the relay chain's entries are read."""
        self.node = node
        self.journal: list[tuple[int, str]] = []
        """Lines that built blocks or changed the network, each with the relay block after which it
        was executed.
        """
        self.snapshots: dict[str, Checkpoint] = {}
        self.branches: dict[str, Checkpoint] = {}
        self.branch = "main"
        self.over = False
        """Whether the user has asked to leave."""
        self.names: dict[PubsubKey, str] = {}
        """Keys that the user named."""
        self.setting: Setting | None = None
        """The facts about the network that never change.

        `None` if `pubsub serve` did not start the node.
        """
        self.scenario_names: dict[PubsubKey, str] = {}
        try:
            scenario = node.ask("pubsub_scenario")
        except NodeRefused as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            self.read(TEXT, "system_chain")
            return
        self.setting = read(answers.SETTING, scenario, self._place("pubsub_scenario"))
        self.scenario_names = self.setting.key_names()

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        *,
        accounts: bool = False,
        forks: Forks = NO_FORKS,
        rules: Rules = SHIPPED,
    ) -> Self:
        """Return a session over a scenario's network.

        `accounts` gives all chains the profile with accounts. Raises the errors of `Simulation`.
        """
        return cls(InProcess(scenario, accounts=accounts, forks=forks, rules=rules), rules)

    @classmethod
    def at(cls, url: str, rules: Rules = SHIPPED) -> Self:
        """Return a session over the node at a ws:// or http:// URL. Raises `ClientError`."""
        # Its library takes a moment, and is an extra.
        from pubsub_emulator.session.remote import RemoteNode  # noqa: PLC0415

        node = RemoteNode(url)
        try:
            return cls(node, rules)
        except BaseException:
            node.close()
            raise

    # The network in this process

    @property
    def simulation(self) -> Simulation:
        """The scenario's simulation. Raises `CommandError` for a node at a URL."""
        return self.node.local().live.simulation

    @property
    def network(self) -> Network:
        """The network. Raises `CommandError` for a node at a URL."""
        return self.simulation.network

    @property
    def scenario(self) -> Scenario:
        """The scenario. Raises `CommandError` for a node at a URL."""
        return self.simulation.scenario

    # The node

    def _place(self, method: str) -> str:
        return f"{self.node.url}: {method}" if self.node.url else method

    def ask(self, method: str, *params: object, chain: str = RELAY) -> object:
        """Return the answer of a method, as JSON.

        Raises `CommandError` if the node refuses the call or does not have the method.
        """
        try:
            return self.node.ask(method, *params, chain=chain)
        except NodeRefused as error:
            if error.code == METHOD_NOT_FOUND:
                if not self.has_facts:
                    raise CommandError(NO_FACTS) from error
                hint = "; `call rpc_methods` lists what there is"
                if self.node.url and method.startswith(("dev_", "pubsub_")):
                    hint += ", and `pubsub serve --dev` has more"
                raise CommandError(
                    f"{self.node.url or 'this session'} does not offer {method}{hint}"
                ) from error
            if error.code in {DEVELOPMENT, INVALID_PARAMS}:
                raise CommandError(
                    safe(error.data if isinstance(error.data, str) else error.message)
                ) from error
            raise CommandError(safe(str(error))) from error

    def read(self, kind: TypeAdapter[T], method: str, *params: object, chain: str = RELAY) -> T:
        """Return the answer of a method as a typed value.

        Raises `BadAnswer` and the errors of `ask`.
        """
        return read(kind, self.ask(method, *params, chain=chain), self._place(method))

    def execute(self, line: str) -> Generator[Shown]:
        """Execute a line and yield its pages while it runs.

        A caller that stops taking pages stops the command. Blocks that were built stay.

        Raises `CommandError` and every other `PubsubError`. The failed block or change is rolled
        back.
        """
        words = split_line(line)
        if not words:
            return
        command = find(words[0])
        pages = map(made_safe, command.run(self, *command.read(words[1:])))
        if not command.changes:
            yield from pages
            return
        done = list(pages)
        self.note(shlex.join([command.name, *words[1:]]), self.number)
        yield from done

    def note(self, line: str, number: int) -> None:
        """Add a line that was executed after relay block `number` to the journal.

        Consecutive steps become one line.
        """
        if line.startswith("step ") and self.journal and self.journal[-1][1].startswith("step "):
            number, earlier_line = self.journal.pop()
            blocks = int(earlier_line.split()[1]) + int(line.split()[1])
            line = f"step {blocks}"
        self.journal.append((number, line))

    def cut(self, height: int) -> None:
        """Remove the lines from the journal that were executed after relay block `height`.

        If a step goes beyond that block, only its later blocks are removed.
        """
        kept_lines = [(after, line) for after, line in self.journal if after < height]
        if kept_lines and kept_lines[-1][1].startswith("step "):
            after, line = kept_lines.pop()
            blocks = int(line.split()[1])
            kept_lines.append((after, f"step {min(blocks, height - after)}"))
        self.journal = kept_lines

    def commands(self, journal: tuple[tuple[int, str], ...] | None = None) -> list[str]:
        """Return the lines of a journal, by default of the present one."""
        chosen = self.journal if journal is None else journal
        return [line for _, line in chosen]

    def advance(self) -> RelayBlockOutcome:
        """Have the node build one relay block. An error rolls it back."""
        block = self.block(hexed(self.read(HASH, "dev_newBlock", {"count": 1})))
        height_before = block.number - 1
        self.note("step 1", height_before)
        return block

    def where(self) -> str:
        """Return the text of the prompt."""
        return f"{self.branch if self.has_facts else self.node.url} {self.number}"

    @property
    def number(self) -> int:
        """The newest relay block's height."""
        return self.head(RELAY).number

    def close(self) -> None:
        """Close the node."""
        self.node.close()

    # Checkpoints

    def now(self, name: str | None = None) -> Checkpoint:
        """Return the present state as a checkpoint.

        `name` is the name under which the node keeps the state, if it does.
        """
        heads = {RELAY: (self.number, self.newest(RELAY))}
        heads |= {
            str(parachain.para): (parachain.number, parachain.hash)
            for parachain in self.parachains()
        }
        return Checkpoint(heads[RELAY][0], heads, tuple(self.journal), name)

    def checkpoint(self) -> Checkpoint:
        """Let the node keep the present state, and return a checkpoint of it."""
        return self.now(self.read(TEXT, "dev_snapshot"))

    def adopt(self, checkpoint: Checkpoint) -> None:
        """Return to a checkpoint. Raises `CommandError` if the node has dropped it."""
        if not self.read(FLAG, "dev_restore", checkpoint.id):
            raise CommandError(f"the node has dropped relay block {checkpoint.number}")
        self.journal = list(checkpoint.journal)

    def drop(self, checkpoint: Checkpoint) -> None:
        """Have the node forget a checkpoint."""
        self.ask("dev_forget", checkpoint.id)

    def become(self, successor: "Session") -> None:
        """Take over all attributes of another session, which must not be used afterwards.

        If the user has asked to leave this session, that request is kept.
        """
        self.node.close()
        over = self.over
        # The dictionary itself is not taken over: Python 3.13.0 to 3.13.2 may clear the objects in
        # it when the successor is collected (github.com/python/cpython/issues/130327).
        for name, value in vars(successor).items():
            setattr(self, name, value)
        self.over = over

    def named(self, name: str) -> Checkpoint:
        """Return the checkpoint of a snapshot, of a branch's newest block, or of `now`.

        Raises `CommandError`.
        """
        if name in ("now", self.branch):
            return self.now()
        checkpoint = self.snapshots.get(name) or self.branches.get(name)
        if checkpoint is None:
            known = [*self.snapshots, *self.branches, self.branch]
            hint = near_to(name, known, f"known: {', '.join(known)}")
            raise CommandError(f"there is no snapshot or branch {name!r}; {hint}")
        return checkpoint

    # Chains

    @property
    def has_facts(self) -> bool:
        """Whether this program runs the node, here or with `pubsub serve`.

        Other nodes cannot tell the facts, and offer only events, storage and headers.
        """
        return self.setting is not None

    @property
    def facts(self) -> Setting:
        """The facts that do not change.

        Raises `CommandError` for a node that was not started by `pubsub serve`.
        """
        if self.setting is None:
            raise CommandError(NO_FACTS)
        return self.setting

    @property
    def paras(self) -> list[ParaId]:
        """Every parachain. Raises `CommandError` like `facts`."""
        return [parachain.para for parachain in self.facts.parachains]

    @property
    def subscribers(self) -> list[ParaId]:
        """All parachains that can subscribe. Raises `CommandError` like `facts`."""
        return [parachain.para for parachain in self.facts.parachains if not parachain.on_demand]

    def para(self, text: str, what: str = "a parachain's id is a whole number") -> ParaId:
        """Return the parachain's id that `text` contains.

        Raises `CommandError` if there is no such parachain, or, beginning with `what`, if the text
        is not a number.
        """
        para_id = ParaId(number(text, what))
        if para_id not in self.paras:
            raise CommandError(
                f"there is no parachain {para_id}. Parachains: {', '.join(map(str, self.paras))}"
            )
        return para_id

    def listed(self, text: str | None, *, subscribers: bool = False) -> list[ParaId]:
        """Return the parachain with the id in `text`, by default all of them."""
        if text is not None:
            return [self.para(text)]
        return self.subscribers if subscribers else self.paras

    def chain(self, para: int) -> ChainState:
        """Return a parachain with its newest state. Raises `CommandError`."""
        return ChainState(ParaId(para), self.state(str(para)))

    def head(self, chain: str) -> Head:
        """Return the newest header of a chain."""
        return self.read(HEAD, "chain_getHeader", chain=chain)

    def newest(self, chain: str) -> bytes:
        """Return the hash of a chain's newest block."""
        return self.read(HASH, "chain_getBlockHash", chain=chain)

    def state(self, chain: str) -> State:
        """Return a chain's newest state. Raises `CommandError`."""
        if chain != RELAY:
            chain = str(self.para(chain, "a chain is `relay` or a parachain's id"))
        return self.node.state(chain, self.newest(chain))

    def parachains(self) -> tuple[ParachainStatus, ...]:
        """Return all parachains with their newest blocks."""
        return self.read(answers.PARACHAINS, "pubsub_parachains")

    # Blocks

    def block(self, name: int | str) -> RelayBlockOutcome:
        """Return a relay block by height or hash. Raises `CommandError` if it is not kept."""
        relay_block = self.read(answers.BLOCK, "pubsub_block", name)
        if relay_block is None:
            raise CommandError(self._unkept(name))
        return relay_block

    def _unkept(self, name: int | str) -> str:
        """Return the message that the node does not keep a relay block."""
        return f"relay block {name} is not kept; the newest one is {self.number}"

    def block_at(self, text: str | None) -> RelayBlockOutcome:
        """Return the relay block at the height in `text`, by default the newest one.

        Raises `CommandError`.
        """
        if self.number == self.facts.first:
            raise CommandError("no block has been built yet; `step` builds one")
        return self.block(
            self.number if text is None else number(text, "BLOCK is the height of a relay block")
        )

    def blocks(self, most: int = HISTORY) -> list[RelayBlockOutcome]:
        """Return the newest relay blocks that are kept, in ascending order."""
        newest = self.number
        descending = []
        for height in range(newest, max(newest - most, self.facts.first), -1):
            block = self.read(answers.BLOCK, "pubsub_block", height)
            if block is None:
                break
            descending.append(block)
        return descending[::-1]

    def relay_hash(self, height: int) -> bytes:
        """Return the hash of the relay block of a height.

        Raises `CommandError` if the block is not kept.
        """
        block_hash = self.read(MAYBE_HASH, "chain_getBlockHash", height)
        if block_hash is None:
            raise CommandError(self._unkept(height))
        return block_hash

    def events(self, chain: str, block: bytes) -> list[Deposited]:
        """Return the events of a block. Raises `BadAnswer` if they cannot be decoded."""
        if not self.has_facts:
            return self.node.events_by_metadata(block)
        raw = self.read(MAYBE_BYTES, "state_getStorage", hexed(EVENTS), hexed(block), chain=chain)
        try:
            records = [] if raw is None else every_runtime().decode_records(raw)
        except ScaleError as error:
            raise BadAnswer(
                f"{self._place('state_getStorage')}: events of block {hexed(block)}: {error}"
            ) from error
        deposited = []
        for record in records:
            event = record.event
            index = getattr(record.phase, "index", None)
            phase = type(record.phase).__name__ if index is None else f"extrinsic {index}"
            failed = words(event.dispatch_error) if isinstance(event, ExtrinsicFailed) else ""
            deposited.append(
                Deposited(phase, event.PALLET.name, type(event).__name__, words(event), failed)
            )
        return deposited

    # Runtimes

    def runtime(self, para: ParaId) -> tuple[RuntimeSpec, bool]:
        """Return a parachain's newest runtime, and whether it is in force.

        Raises `BadAnswer`.
        """
        answer = self.read(answers.RUNTIME, "pubsub_runtime", para)
        try:
            return decode_spec(answer.code), answer.in_force
        except PubsubError as error:
            raise BadAnswer(f"{self._place('pubsub_runtime')}: no runtime: {error}") from error

    def spec(self, para: ParaId) -> RuntimeSpec:
        """Return a parachain's newest runtime, which may not be in force yet."""
        return self.runtime(para)[0]

    def order_spec(self, spec: RuntimeSpec) -> str:
        """Send a parachain a new runtime, and say when it takes effect.

        Raises `PubsubError` if the runtime cannot work.
        """
        newer = replace(spec, spec_version=spec.spec_version + 1)
        self.ask("pubsub_setRuntime", newer.para_id, hexed(newer.encode()))
        return (
            f"the message is sent in relay block {self.number + 1} and takes effect in the"
            " parachain block after its arrival"
        )

    # Keys

    def key(self, text: str) -> PubsubKey:
        """Return the key that a text names or, with 0x, contains in hex.

        The name is stored for `key_name`. Raises `CommandError`.
        """
        if text.startswith("0x"):
            raw = hexadecimal(text, "a key")
            if len(raw) != KEY_LENGTH:
                raise CommandError(f"a key has {KEY_LENGTH} bytes, not {len(raw)}: {text}")
            return PubsubKey(raw)
        try:
            derived = key_from_name(text)
        except ValueError as error:
            raise CommandError(str(error)) from None
        self.names[derived] = text
        return derived

    def key_name(self, key: bytes) -> str:
        """Return the name that a key was made from, or its hex if that is not known."""
        pubsub_key = PubsubKey(key)
        return self.names.get(pubsub_key) or self.scenario_names.get(pubsub_key) or hexed(key)

    def key_names(self) -> list[str]:
        """Return all known names, for completion."""
        return [*self.scenario_names.values(), *self.names.values()]

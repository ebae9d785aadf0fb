"""A session: one network that is stepped, attacked and inspected. It takes command lines and returns pages.

It uses no terminal and no clock. The caller shows the pages. A caller that stops taking them interrupts the command
after the last whole block. From Python:

    >>> session = Session(load_bundled("demo"))
    >>> for page in session.execute("step 5"):
    ...     print(page)
"""

import shlex
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Final

from pubsub_emulator.cli.pages import Shown
from pubsub_emulator.cli.session.command import CommandError, find, near_to, split_line
from pubsub_emulator.cli.session.completion import complete
from pubsub_emulator.emulator.fork import NO_FORKS, Forks
from pubsub_emulator.emulator.network import Network, Snapshot, Step
from pubsub_emulator.emulator.network.parachain import Parachain
from pubsub_emulator.emulator.scenario import Scenario, missing_key, published_key
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.primitives.pubsub import KEY_LENGTH, key_from_data
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.parachain.governance import check_runtime

REMEMBERED: Final = 256
"""How many steps a session keeps for inspection."""

TRUNK: Final = "main"
"""The branch that a session starts on."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a session: the network and the commands that led to it. `restore` brings all of it back."""

    network: Snapshot
    number: int
    steps: tuple[Step, ...] = ()
    journal: tuple[str, ...] = ()
    wanted: dict[ParaId, RuntimeSpec] = field(default_factory=dict)
    """Runtimes that were sent and are not in force yet."""


class Session:
    """Commands over a scenario's network. Raises as `Simulation` for one that cannot work."""

    def __init__(self, scenario: Scenario, *, accounts: bool = False, forks: Forks = NO_FORKS) -> None:
        """`accounts` gives all chains that profile, in which root may set storage."""
        self.scenario = scenario
        self.accounts = accounts
        self.forks = forks
        self.simulation = Simulation(scenario, accounts=accounts, forks=forks)
        self.steps: list[Step] = []
        self.journal: list[str] = []
        self.wanted: dict[ParaId, RuntimeSpec] = {}
        self.snapshots: dict[str, Checkpoint] = {}
        self.branches: dict[str, Checkpoint] = {}
        self.branch = TRUNK
        self.over = False
        """Whether the user has asked to leave."""
        self.names: dict[PubsubKey, str] = {}
        """Keys that the user named."""
        self.scenario_names = _scenario_names(scenario)

    @property
    def network(self) -> Network:
        """The network in its present state."""
        return self.simulation.network

    def execute(self, line: str) -> Generator[Shown]:
        """Execute a line and yield its pages while it runs.

        A caller that stops taking pages stops the command. Blocks that were built stay.

        Raises `CommandError` and every other `PubsubError`. The failed block or change is rolled back.
        """
        words = split_line(line)
        if not words:
            return
        command = find(words[0])
        given = command.read(words[1:])
        if not command.changes:
            yield from command.run(self, given)
            return
        pages = list(command.run(self, given))
        self.note(shlex.join([command.name, *words[1:]]))
        yield from pages

    def note(self, line: str) -> None:
        """Add a line to the journal; steps in a row become one line."""
        if line.startswith("step ") and self.journal and self.journal[-1].startswith("step "):
            line = f"step {int(self.journal.pop().split()[1]) + int(line.split()[1])}"
        self.journal.append(line)

    def advance(self) -> Step:
        """Build one relay block with the scenario's traffic. An error rolls it back."""
        before = self.network.snapshot()
        try:
            step = self.simulation.step()
        except BaseException:
            self.network.restore(before)
            raise
        self.steps.append(step)
        del self.steps[:-REMEMBERED]
        self.note("step 1")
        for para, spec in list(self.wanted.items()):
            if self.chain(para).spec().spec_version >= spec.spec_version:
                del self.wanted[para]
        return step

    def where(self) -> str:
        """The text of a prompt."""
        return f"{self.branch} {self.network.number}"

    @property
    def number(self) -> int:
        """The newest relay block's height."""
        return self.network.number

    def complete(self, line: str) -> list[str]:
        """Completions of the last word of a line."""
        return complete(self, line)

    # Checkpoints

    def checkpoint(self) -> Checkpoint:
        """The present state."""
        return Checkpoint(
            self.network.snapshot(), self.network.number, tuple(self.steps), tuple(self.journal), dict(self.wanted)
        )

    def adopt(self, checkpoint: Checkpoint) -> None:
        """Return to a checkpoint."""
        self.network.restore(checkpoint.network)
        self.steps = list(checkpoint.steps)
        self.journal = list(checkpoint.journal)
        self.wanted = dict(checkpoint.wanted)

    def become(self, other: "Session") -> None:
        """Take over all attributes of another session, which must not be used afterwards."""
        self.scenario, self.simulation, self.accounts = other.scenario, other.simulation, other.accounts
        self.forks = other.forks
        self.steps, self.journal, self.wanted = other.steps, other.journal, other.wanted
        self.snapshots, self.branches, self.branch = other.snapshots, other.branches, other.branch
        self.names, self.scenario_names = other.names, other.scenario_names

    def named(self, name: str) -> Checkpoint:
        """The checkpoint of a snapshot, of a branch's newest block, or of `now`. Raises `CommandError`."""
        if name in ("now", self.branch):
            return self.checkpoint()
        found = self.snapshots.get(name) or self.branches.get(name)
        if found is None:
            known = [*self.snapshots, *self.branches, self.branch]
            hint = near_to(name, known, f"there are {', '.join(known)}")
            raise CommandError(f"there is no snapshot or branch {name!r}; {hint}")
        return found

    # Arguments

    def chain(self, para: int) -> Parachain:
        """A parachain. Raises `UnknownParachain`."""
        return self.network.parachain(para)

    def chains(self, text: str | None, *, subscribers: bool = False) -> list[Parachain]:
        """The parachain named, or all of them."""
        if text is not None:
            return [self.chain(number(text, "a parachain's id is a whole number"))]
        return [chain for chain in self.network.parachains.values() if not (subscribers and chain.pace.on_demand)]

    @property
    def relay_state(self) -> State:
        """The relay chain's newest state."""
        return self.network.relay.state

    def storage(self, chain: str) -> Storage:
        """Read access to a chain's newest state. Raises `CommandError`, `UnknownParachain`."""
        if chain == "relay":
            return self.network.relay.storage()
        return Storage(self.chain(number(chain, "a chain is `relay` or a parachain's id")).state)

    def spec(self, para: int) -> RuntimeSpec:
        """A parachain's runtime, including an ordered upgrade that is not in force yet."""
        return self.wanted.get(ParaId(para)) or self.chain(para).spec()

    def order_spec(self, spec: RuntimeSpec) -> None:
        """Send a parachain a new runtime in the next relay block. Raises `ImpossibleConfig`."""
        newer = replace(spec, spec_version=spec.spec_version + 1)
        check_runtime(newer)
        self.network.upgrade(newer)
        self.wanted[newer.para_id] = newer

    def key(self, text: str) -> PubsubKey:
        """Read a key by name or in hex. Names are kept for output. Raises `CommandError`."""
        return key(text, self.names)

    def key_name(self, key: bytes) -> str:
        """The name that a key was made from, or its hex if that is unknown."""
        known = self.names.get(PubsubKey(key)) or self.scenario_names.get(PubsubKey(key))
        return known or f"0x{key.hex()}"

    def key_names(self) -> list[str]:
        """Every known name, for completion."""
        return [*self.scenario_names.values(), *self.names.values()]


def _scenario_names(scenario: Scenario) -> dict[PubsubKey, str]:
    """The keys of a scenario's publishers, and the subscribed keys that are never published."""
    names = {
        published_key(para, index): f"{para}/{index}"
        for group in scenario.publishers
        for para in group.paras
        for index in range(group.keys)
    }
    wanted = (item for each in scenario.subscribers for item in each.subscribe)
    absent = max((item.missing_keys for item in wanted), default=0)
    for para in scenario.publisher_ids():
        names.update({missing_key(para, index): f"{para}/never/{index}" for index in range(absent)})
    return names


def number(text: str, what: str, least: int = 0) -> int:
    """Parse a whole number of digits and `_`. Raises `CommandError` that begins with `what`."""
    digits = text.replace("_", "")
    if not digits.isascii() or not digits.isdigit() or int(digits) < least:
        raise CommandError(f"{what}, not {text!r}")
    return int(digits)


def hexadecimal(text: str, what: str) -> bytes:
    """Parse bytes given as 0x and digits. Raises `CommandError`."""
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise CommandError(f"{what} in hex is 0x and an even number of digits, not {text!r}") from None


def key(text: str, names: dict[PubsubKey, str]) -> PubsubKey:
    """Read a key by name or in hex; a name is put in `names`. Raises `CommandError`."""
    if text.startswith("0x"):
        raw = hexadecimal(text, "a key")
        if len(raw) != KEY_LENGTH:
            raise CommandError(f"a key has {KEY_LENGTH} bytes, not {len(raw)}: {text}")
        return PubsubKey(raw)
    named = key_from_data(text.encode())
    names[named] = text
    return named


def value(text: str) -> bytes:
    """Parse a published value: text, or 0x and digits. Raises `CommandError`."""
    return hexadecimal(text, "a value") if text.startswith("0x") else text.encode()

"""A session: one network that is stepped, attacked and looked into, command line in, pages out.

No terminal and no clock: whoever takes the pages shows them, and may stop taking them at any point, which interrupts
the command after the last whole block. Usable from Python as it is:

    >>> session = Session(load_bundled("demo"))
    >>> for page in session.execute("step 5"):
    ...     print(page)
"""

import shlex
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Final

from pubsub_emulator.cli.pages import Shown
from pubsub_emulator.cli.session.command import CommandError, find, near_to
from pubsub_emulator.cli.session.completion import complete
from pubsub_emulator.emulator.network import Network, Snapshot, Step
from pubsub_emulator.emulator.network.fork import NO_FORKS, Forks
from pubsub_emulator.emulator.network.parachain import Parachain
from pubsub_emulator.emulator.scenario import Scenario, missing_key, published_key
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.primitives.pubsub import KEY_LENGTH, key_from_data
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.parachain.governance import check_runtime

REMEMBERED: Final = 256
"""The newest steps that can be looked at."""

TRUNK: Final = "main"
"""The branch that a session starts on."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A network at one point of a session, and how it was come to: all that `restore` brings back."""

    network: Snapshot
    number: int
    steps: tuple[Step, ...] = ()
    journal: tuple[str, ...] = ()
    wanted: dict[ParaId, RuntimeSpec] = field(default_factory=dict)
    """Runtimes that were ordered and are not in force yet."""


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
        """Keys that the user spoke of by name."""
        self.scenario_names = _scenario_names(scenario)

    @property
    def network(self) -> Network:
        """The network as it stands."""
        return self.simulation.network

    def execute(self, line: str) -> Generator[Shown]:
        """Do what a line says; pages come as the work goes on.

        A caller that stops taking pages stops the command. Blocks that were built stay.

        Raises `CommandError` and every other `PubsubError`, with the network as it was before the block or change that
        failed.
        """
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise CommandError(f"{error} in: {line.strip()}") from error
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
        """One relay block with the scenario's traffic; an error leaves everything as it was before it."""
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
        """What a prompt shows."""
        return f"{self.branch} {self.network.number}"

    @property
    def number(self) -> int:
        """The newest relay block's height."""
        return self.network.number

    def complete(self, line: str) -> list[str]:
        """What the last word of a line may go on as."""
        return complete(self, line)

    # Moments

    def checkpoint(self) -> Checkpoint:
        """Now."""
        return Checkpoint(
            self.network.snapshot(), self.network.number, tuple(self.steps), tuple(self.journal), dict(self.wanted)
        )

    def adopt(self, moment: Checkpoint) -> None:
        """Go to another moment."""
        self.network.restore(moment.network)
        self.steps = list(moment.steps)
        self.journal = list(moment.journal)
        self.wanted = dict(moment.wanted)

    def become(self, other: "Session") -> None:
        """Take everything over from another session, which is not used any more."""
        self.scenario, self.simulation, self.accounts = other.scenario, other.simulation, other.accounts
        self.forks = other.forks
        self.steps, self.journal, self.wanted = other.steps, other.journal, other.wanted
        self.snapshots, self.branches, self.branch = other.snapshots, other.branches, other.branch
        self.names, self.scenario_names = other.names, other.scenario_names

    def named(self, name: str) -> Checkpoint:
        """A snapshot, a branch's newest point, or `now`. Raises `CommandError`."""
        if name in ("now", self.branch):
            return self.checkpoint()
        found = self.snapshots.get(name) or self.branches.get(name)
        if found is None:
            known = [*self.snapshots, *self.branches, self.branch]
            hint = near_to(name, known, f"there are {', '.join(known)}")
            raise CommandError(f"there is no snapshot or branch {name!r}; {hint}")
        return found

    # What arguments mean

    def chain(self, para: int) -> Parachain:
        """A parachain. Raises `UnknownParachain`."""
        return self.network.parachain(para)

    def storage(self, chain: str) -> Storage:
        """Read access to a chain's newest state. Raises `CommandError`, `UnknownParachain`."""
        if chain == "relay":
            return self.network.relay.storage()
        return Storage(self.chain(number(chain, "a chain is `relay` or a parachain's id")).state)

    def spec(self, para: int) -> RuntimeSpec:
        """A parachain's runtime as it will be once what was ordered is in force."""
        return self.wanted.get(ParaId(para)) or self.chain(para).spec()

    def order_spec(self, spec: RuntimeSpec) -> None:
        """Have governance install a runtime, by a message in the next relay block. Raises `ImpossibleConfig`."""
        newer = replace(spec, spec_version=spec.spec_version + 1)
        check_runtime(newer)
        self.network.upgrade(newer)
        self.wanted[newer.para_id] = newer

    def key(self, text: str) -> PubsubKey:
        """A key by name or in hex; names are remembered to show keys by. Raises `CommandError`."""
        if text.startswith("0x"):
            raw = hexadecimal(text, "a key")
            if len(raw) != KEY_LENGTH:
                raise CommandError(f"a key has {KEY_LENGTH} bytes, not {len(raw)}: {text}")
            return PubsubKey(raw)
        key = key_from_data(text.encode())
        self.names[key] = text
        return key

    def key_name(self, key: bytes) -> str:
        """A key by the name it was made from, if that is known."""
        known = self.names.get(PubsubKey(key)) or self.scenario_names.get(PubsubKey(key))
        return known or f"0x{key.hex()}"

    def key_names(self) -> list[str]:
        """Every name known, for completion."""
        return [*self.scenario_names.values(), *self.names.values()]


def _scenario_names(scenario: Scenario) -> dict[PubsubKey, str]:
    """The keys that a scenario's publishers hold, and those that subscribers wait for in vain."""
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
    """A whole number, digits and `_` only. Raises `CommandError` that says `what`."""
    digits = text.replace("_", "")
    if not digits.isascii() or not digits.isdigit() or int(digits) < least:
        raise CommandError(f"{what}, not {text!r}")
    return int(digits)


def hexadecimal(text: str, what: str) -> bytes:
    """Bytes given as 0x and digits. Raises `CommandError`."""
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise CommandError(f"{what} in hex is 0x and an even number of digits, not {text!r}") from None


def value(text: str) -> bytes:
    """A published value: text, or 0x and digits. Raises `CommandError`."""
    return hexadecimal(text, "a value") if text.startswith("0x") else text.encode()

"""The relay states under which a request is proven.

They are those of a node, a file, a session, a history or a scenario.
"""

import re
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from pubsub_emulator.client.places import is_url
from pubsub_emulator.client.request_costs import BlockCost, Provable, cost_of
from pubsub_emulator.emulator.network.records import Observer, RelayRecord
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.progress import Stage, unwatched
from pubsub_emulator.files.shown import safe
from pubsub_emulator.files.untrusted import MOST_TEXT, parse_toml, read_bytes, read_json
from pubsub_emulator.node.chain.lines import FORMAT
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.proving.names import OwnNames, fixed_names, names_from
from pubsub_emulator.runtime.framework.relay_request import RelayProofRequest
from pubsub_emulator.trie.errors import BadNode, MissingNode
from pubsub_emulator.trie.lazy import StateUnavailable

if TYPE_CHECKING:
    from pubsub_emulator.client.kept_answers import KeptAnswers
    from pubsub_emulator.client.request_states import BlockAt, ChainStates

_BLOCKS: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
PARACHAIN_PALLET: Final = "ParachainSystem"
"""The pallet that every parachain has and no relay chain."""
KINDS: Final = "a node's URL, a state file, a saved session, a history, a run or a scenario"
MOST_BLOCKS: Final = 10_000
"""The maximum number of blocks of one call."""
SECONDS: Final = 20.0
"""The time for each answer of a node, in seconds, unless another is given."""
MOST_NODES: Final = 512 * 1_048_576
"""The maximum size of the proof nodes of a history in bytes."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks in which a request is proven."""

    count: int = 1
    """The number of blocks up to the last one."""
    last: int | None = None
    """The height of the last block, `None` for the newest one."""
    asked: bool = False
    """Whether the user gave `--blocks`. A source with a single state refuses it."""


NEWEST: Final = Blocks()
"""The newest block alone."""


def blocks_of(text: str | None) -> Blocks:
    """Return the blocks that a value of `--blocks` names.

    The value `20` means the 20 newest blocks, and `100-150` the blocks of these heights. Without a
    value it is the newest block. Raises `InputError`.
    """
    if text is None:
        return NEWEST
    match = _BLOCKS.fullmatch(text)
    if match is None:
        raise InputError(
            f"--blocks {safe(text[:40])}: this is neither a number nor a range such as 100-150"
        )
    first, last = match.groups()
    count = int(first) if last is None else int(last) - int(first) + 1
    if last is not None and count < 1:
        raise InputError(f"--blocks {text}: the range must ascend, as in {last}-{first}")
    if not 1 <= count <= MOST_BLOCKS:
        raise InputError(f"--blocks {text}: give from 1 to {MOST_BLOCKS:,} blocks")
    return Blocks(count, None if last is None else int(last), asked=True)


class RelayStateSource(Protocol):
    """A place with relay states."""

    names: OwnNames
    """The names of the chain's keys."""

    def costs(self, request: RelayProofRequest, para: ParaId | None) -> Iterator[BlockCost]:
        """Yield the cost of a request in each block, oldest first."""


@dataclass(slots=True)
class NodeStateSource:
    """The blocks of a node."""

    states: "ChainStates"
    blocks: "list[BlockAt]"
    names: OwnNames
    kept: "KeptAnswers | None" = None
    """Stores the node's answers about each proven block, also if a later block fails."""

    def costs(self, request: RelayProofRequest, para: ParaId | None) -> Iterator[BlockCost]:
        """Yield the cost in each block. Raises `ClientError`, `StateUnavailable`."""
        for block in self.blocks:
            # The answers about a block are stored once its cost is known, or dropped if it fails.
            with nullcontext() if self.kept is None else self.kept.accepted():
                cost = self._cost(block, request, para)
            yield cost

    def _cost(self, block: "BlockAt", request: RelayProofRequest, para: ParaId | None) -> BlockCost:
        """Fetch the nodes of a block and return the cost. Raises `StateUnavailable`."""
        number = block.header.number
        nodes = self.states.nodes(block, request, para)
        state = Provable.of_nodes(Hash(block.header.state_root), nodes)
        try:
            return cost_of(state, number, block.hash, request, para)
        except (MissingNode, BadNode) as error:
            url = self.states.node.url
            raise StateUnavailable(
                f"{url}: the node's proof of block {number} is incomplete: {error}"
            ) from error


@dataclass(frozen=True, slots=True)
class KnownState:
    """The relay state of a block, without a node to ask for more of it."""

    number: int
    block: Hash | None
    """The block's hash, `None` if it is not known."""
    state: Provable


@dataclass(slots=True)
class StatesSource:
    """Relay states from a file, a history or a run."""

    states: tuple[KnownState, ...]
    """The states, the oldest first."""
    names: OwnNames

    def costs(self, request: RelayProofRequest, para: ParaId | None) -> Iterator[BlockCost]:
        """Yield the cost in each state. Raises `InputError` if a state lacks nodes of a key."""
        for known in self.states:
            try:
                yield cost_of(known.state, known.number, known.block, request, para)
            except MissingNode as error:
                raise InputError(
                    f"block {known.number}: {error}; a history has only the keys that its"
                    " parachains requested"
                ) from None


@contextmanager
def opened(
    source: str,
    blocks: Blocks,
    metadata: str | None = None,
    *,
    seconds: float = SECONDS,
    cache: Path | None = None,
    stage: Stage = unwatched,
) -> Iterator[RelayStateSource]:
    """Yield the relay states of a source while the context lasts.

    `metadata` is a node or a file whose metadata names the keys. By default it is that of the
    source, if it is a node. `seconds` is the time for each answer of a node, and `cache` the folder
    in which its answers are kept. `stage` shows the progress of running a scenario or session.

    Raises `InputError`, `ClientError`, and the errors of the reader of the source's kind.
    """
    if is_url(source):
        with _node(source, blocks, metadata, seconds=seconds, cache=cache) as node_source:
            yield node_source
        return
    names = fixed_names() if metadata is None else names_from(metadata, seconds)
    yield StatesSource(tuple(_known(source, blocks, stage)), names)


@contextmanager
def _node(
    source: str,
    blocks: Blocks,
    metadata: str | None,
    *,
    seconds: float,
    cache: Path | None,
) -> Iterator[NodeStateSource]:
    """Yield the blocks of the node at a URL while the context lasts.

    Raises `InputError` if it is a parachain's node, and `ClientError`.
    """
    from pubsub_emulator.client.kept_answers import KeptAnswers
    from pubsub_emulator.client.live_state import BlockingNode
    from pubsub_emulator.client.places import url_and_block
    from pubsub_emulator.client.request_states import ChainStates
    from pubsub_emulator.client.storage_names import StorageNames

    url, block = url_and_block(source)
    if block is not None and blocks.last is not None:
        raise InputError("give either a block after the URL's @, or --blocks A-B")
    with closing(BlockingNode(url, seconds)) as node:
        cached_node = None if cache is None else KeptAnswers(node, cache)
        states = ChainStates(node if cached_node is None else cached_node)
        with nullcontext() if cached_node is None else cached_node.accepted():
            newest = states.block(block if blocks.last is None else str(blocks.last))
            ancestors = states.back_from(newest, blocks.count)
            if metadata is None:
                metadata_of_runtime = states.metadata(newest)
                if PARACHAIN_PALLET in metadata_of_runtime.pallets:
                    raise InputError(
                        f"{url}: this is a parachain's node, whose runtime has the pallet"
                        f" {PARACHAIN_PALLET}; SOURCE is a node of its relay chain, and --request"
                        " takes the parachain's"
                    )
                names = OwnNames(StorageNames(metadata_of_runtime))
            else:
                names = names_from(metadata, seconds)
        yield NodeStateSource(states, ancestors, names, cached_node)


def _known(source: str, blocks: Blocks, stage: Stage) -> Iterator[KnownState]:
    """Yield the states of a file, a session, a history or a scenario."""
    path = Path(source)
    if path.suffix == ".toml" and path.is_file():
        _refuse_request(path)
    if path.is_dir():
        yield from _history(path, blocks)
    elif path.suffix == ".json":
        yield from _file(path, blocks, stage)
    else:
        yield from _scenario(source, blocks, stage)


def _refuse_request(path: Path) -> None:
    """Refuse a file with a request, which is an option and not a source. Raises `InputError`."""
    try:
        document = parse_toml(read_bytes(path, MOST_TEXT).decode())
    except (PubsubError, UnicodeDecodeError):
        # The reader of scenarios reports the error in the file.
        return
    if document and document.keys() <= {"top", "child"}:
        raise InputError(f"{path}: this is a request, so it belongs after --request")


class _LastStates(Observer):
    """Keeps the states of the newest blocks of a simulation."""

    def __init__(self, simulation: Simulation, blocks: Blocks) -> None:
        self._simulation = simulation
        self._last = blocks.last
        self.states: deque[KnownState] = deque(maxlen=blocks.count)

    def relay_block(self, record: RelayRecord) -> None:
        """Keep the state of a new block, unless the block is after the last one to return."""
        if self._last is None or record.number <= self._last:
            state = self._simulation.network.relay.state.fork()
            self.states.append(KnownState(record.number, record.hash, Provable.of(state)))


def _scenario(source: str, blocks: Blocks, stage: Stage) -> Iterator[KnownState]:
    """Run a scenario and yield the newest states of its relay chain."""
    from pubsub_emulator.emulator.scenario.file import find_scenario

    scenario = find_scenario(source)
    with stage(f"running {scenario.name}", scenario.relay_blocks) as advance:
        simulation = Simulation(scenario)
        last_states = _LastStates(simulation, blocks)
        simulation.network.observe(last_states)
        simulation.run(advance)
    yield from last_states.states


def _file(path: Path, blocks: Blocks, stage: Stage) -> Iterator[KnownState]:
    """Yield the state in a state file, or the newest states of a session that is played."""
    from pubsub_emulator.client.state_file import MOST_BYTES, read_state

    document = read_json(path, MOST_BYTES, InputError)
    if isinstance(document, dict) and document.get("format") == FORMAT:
        yield from _session(path, blocks, stage)
        return
    if blocks.asked:
        raise InputError(f"{path}: a state file has one state, so --blocks cannot be given")
    fork = read_state(path)
    yield KnownState(fork.number, None, Provable.of(fork.state))


def _session(path: Path, blocks: Blocks, stage: Stage) -> Iterator[KnownState]:
    """Play a session and yield the newest states of its relay chain."""
    from pubsub_emulator.session import saved

    recorders: list[_LastStates] = []

    def record(simulation: Simulation) -> None:
        recorders.append(_LastStates(simulation, blocks))
        simulation.network.observe(recorders[0])

    with stage(f"replaying {path.name}") as advance:
        saved.play(path, record, advance)
    yield from recorders[0].states


def _history(path: Path, blocks: Blocks) -> Iterator[KnownState]:
    """Yield the newest relay states of a history.

    A history does not have whole states, but only the nodes of its blocks' proofs.
    """
    from pubsub_emulator.spark_audit.history import schema
    from pubsub_emulator.spark_audit.history.manifest import history_folder
    from pubsub_emulator.spark_audit.history.reader import Fault, History

    folder = history_folder(path)
    if folder is None:
        raise InputError(f"{path}: this folder has no history; sources are {KINDS}")
    history = History.open(folder)
    faults: list[Fault] = []
    nodes: dict[Hash, bytes] = {}
    size = 0
    for row in history.rows(history.files(schema.NODES), faults):
        size += len(row["data"])
        if size > MOST_NODES:
            raise InputError(f"{path}: proofs of more than {MOST_NODES:,} bytes of nodes")
        nodes[blake2_256(row["data"])] = row["data"]
    roots: dict[int, tuple[Hash | None, Hash]] = {}
    networks: set[str] = set()
    for row in history.rows(history.files(schema.RELAY_HEADERS), faults):
        networks.add(row["network"])
        block_hash = None if row["hash"] is None else Hash(row["hash"])
        roots[row["number"]] = (block_hash, Hash(row["storage_root"]))
    if faults:
        raise InputError(f"{path}: {faults[0].path}: {faults[0].error}")
    if len(networks) > 1:
        raise InputError(f"{path}: it has several networks: {', '.join(sorted(networks))}")
    if blocks.last is None:
        # Parachain blocks prove states of older relay blocks, so the history lacks the nodes of the
        # newest states.
        numbers = sorted(number for number, (_, root) in roots.items() if root in nodes)
    else:
        numbers = sorted(number for number in roots if number <= blocks.last)
    if not numbers:
        raise InputError(f"{path}: it has none of the requested relay blocks")
    for number in numbers[-blocks.count :]:
        block_hash, root = roots[number]
        yield KnownState(number, block_hash, Provable.of_nodes(root, nodes))

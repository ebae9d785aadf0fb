"""Readers of untrusted data as targets of mutation.

They read candidates, states, messages, scenarios, fixtures, cases and stories. If a reader accepts
an input that has an encoding, it also checks that the result encodes to the same bytes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from pubsub_emulator.emulator.fixtures import parse_fixture, replay_fixture
from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.laboratory.campaign import corpus
from pubsub_emulator.laboratory.cases import Case
from pubsub_emulator.laboratory.differences import read_difference
from pubsub_emulator.laboratory.fixture_set import fixtures_of_case
from pubsub_emulator.laboratory.mutation import target
from pubsub_emulator.laboratory.stories import tell
from pubsub_emulator.laboratory.target_files import from_file
from pubsub_emulator.laboratory.verifier import VerifierDifference, case_of
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.scale import Reader, encode_bytes
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.primitives.types import Hash, PubsubKey
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_subscriber.config import decode_spec, integrity_test
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead
from pubsub_emulator.runtime.parachain.validate import RelayContext, judge_block
from pubsub_emulator.trie import read_proof
from pubsub_emulator.trie.compact import decode_compact
from pubsub_emulator.xcm import Publish, decode, encode

_SMALL: Final = (
    "drop-and-restore",
    "wrong-state-root",
    "add-junk",
    "alter-message",
    "as-if-cursor",
)
"""The cases of the corpus from which the targets start. They are small, so that readers are fast.
"""


@cache
def _blocks() -> tuple[tuple[Case, Candidate], ...]:
    """Return the cases with their honest blocks."""
    small = (case for name, case in corpus() if name.removesuffix(".json") in _SMALL)
    return tuple((case, case.block) for case in small if case.block is not None)


def _chosen(data: bytes) -> tuple[Case, Candidate]:
    """Return the case that the first byte chooses, with its honest block."""
    index = data[0] if data else 0
    return _blocks()[index % len(_blocks())]


def _judged(case: Case, parent: ChainHead, candidate: Candidate) -> str:
    """Judge a block and return the verdict. The parent's state must not change."""
    state = parent.state
    root_before = state.root()
    refusal = judge_block(parent, candidate, case.judging.context(candidate))[1]
    verdict = "valid" if refusal is None else refusal.verdict.value
    if state.root() != root_before:
        raise DefensiveFailure("judging a block changed its parent's state")
    return verdict


def _rest(reader: Reader) -> Iterator[bytes]:
    """Yield the byte strings up to the end."""
    while reader.remaining():
        yield reader.bytes_()


def judged_blocks() -> Iterator[tuple[Case, Candidate, RelayContext]]:
    """Yield cases, each with its block after the cheat and the relay chain's facts about it."""
    for case, block in _blocks():
        candidate = case.changed_block(block, case.shrunk)
        yield case, candidate, case.judging.context(candidate)


def _candidates() -> Iterable[bytes]:
    return [bytes((index,)) + block.encode() for index, (_, block) in enumerate(_blocks())]


@target(
    "candidate", "bytes of a block, judged on a known state", _candidates, "runtime", "primitives"
)
def _read_candidate(data: bytes) -> str:
    """Judge a block on the parent of an honest one. Only the honest block itself may be valid.

    The first byte chooses the honest block.
    """
    case, block = _chosen(data)
    candidate = Candidate.decode(data[1:])
    if candidate.encode() != data[1:]:
        raise DefensiveFailure("a candidate is encoded as other bytes")
    verdict = _judged(case, case.judging.parent, candidate)
    if verdict == "valid" and candidate != block:
        raise DefensiveFailure("another block than the honest one is valid")
    return verdict


def _states() -> Iterable[bytes]:
    for index, (case, _) in enumerate(_blocks()):
        rows = case.judging.parent.state.top_entries()
        yield bytes((index,)) + b"".join(
            encode_bytes(key) + encode_bytes(value) for key, value in rows
        )


@target("state", "the state of a block's parent", _states, "runtime")
def _read_state(data: bytes) -> str:
    """Judge an honest block on a parent whose state has other entries.

    The first byte chooses the block. Keys and values of the state follow in turn.
    """
    case, block = _chosen(data)
    reader = Reader(data, 1)
    rows = {key: reader.bytes_() for key in _rest(reader)}
    state = State.from_entries(
        (key, value) for key, value in rows.items() if not key.startswith(CHILD_STORAGE_PREFIX)
    )
    header = replace(case.judging.parent.header, state_root=state.root())
    return _judged(case, ChainHead(header, state), block)


def _proofs() -> Iterable[bytes]:
    return [case.judging.root + b"".join(map(encode_bytes, case.proof)) for case, _ in _blocks()]


def _nodes(data: bytes) -> tuple[Hash, list[bytes]]:
    """Read a root and the nodes after it. Raises `ScaleError`."""
    reader = Reader(data)
    return Hash(reader.take(32)), [*_rest(reader)]


@target("proof", "nodes of a read proof", _proofs, "trie")
def _read_proof(data: bytes) -> str:
    root, nodes = _nodes(data)
    values = read_proof(root, nodes, [b"", b"\x00" * 32, b"\xff" * 7])
    return str(sum(value is not None for value in values.values()))


@target("compact", "items of a compact proof", _proofs, "trie")
def _read_compact(data: bytes) -> str:
    root, items = _nodes(data)
    return "some" if decode_compact(root, items) else "none"


def _messages() -> Iterable[bytes]:
    """Return two messages that publish, and messages of other instructions."""
    publish = Publish(PubsubKey(bytes(32)), b"value", 7)
    samples = (
        "0508 2f0000 060200 0c000000",
        "0504 2c" + "11" * 32,
        "050c 0a 0b 00 17",
        "05 04 2f 01 00 04 04",
    )
    return [
        encode((publish,)),
        encode((publish,) * 9),
        *(bytes.fromhex(sample.replace(" ", "")) for sample in samples),
    ]


@target("xcm", "an upward message", _messages, "xcm")
def _read_message(data: bytes) -> str:
    message = decode(data)
    if encode(message) != data:
        raise DefensiveFailure("a message is encoded as other bytes")
    return f"{min(len(message), 5)} instructions"


def _headers() -> Iterable[bytes]:
    return [block.header.encode() for _, block in _blocks()]


@target("header", "a block's header", _headers, "primitives")
def _read_header(data: bytes) -> str:
    header = Header.decode(data)
    if header.encode() != data:
        raise DefensiveFailure("a header is encoded as other bytes")
    header.hash()
    return f"slot {header.aura_slot() is not None}, seal {header.aura_seal() is not None}"


def _runtimes() -> Iterable[bytes]:
    return [
        code
        for case, _ in _blocks()
        if (code := case.judging.parent.state.top.get(b":code")) is not None
    ]


@target("runtime", "a parachain's runtime", _runtimes, "runtime.pallet_subscriber.config")
def _read_runtime(data: bytes) -> str:
    spec = decode_spec(data)
    if spec.encode() != data:
        raise DefensiveFailure("a runtime is encoded as other bytes")
    integrity_test(spec)
    return spec.cache.value


def _scenarios() -> Iterable[bytes]:
    """Return a small scenario with two publishers and one subscriber."""
    small = (
        b'name = "n"\nseed = "s"\nrelay_blocks = 4\n[[publishers]]\nparas = [1000, 2000]\nkeys ='
        b" 3\nupdate_rate = 0.5\n"
    )
    small += b'[[subscribers]]\npara = 3000\nsubscribe = [{ publishers = "all", keys = 2 }]\n'
    return [small]


@target("scenario", "a scenario's TOML", _scenarios, "emulator.scenario")
def _read_scenario(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "not UTF-8"
    return f"{len(parse_scenario(text, 'file').subscribers)} subscribers"


def _fixtures() -> Iterable[bytes]:
    written: list[bytes] = []
    for case, _ in _blocks()[:2]:
        written += [fixture.model_dump_json().encode() for fixture in fixtures_of_case(case)]
    return written


@target("fixture", "a fixture, replayed", _fixtures, "emulator.fixtures", "runtime", text=True)
def _read_fixture(data: bytes) -> str:
    return f"{len(replay_fixture(parse_fixture(data, 'file')))} differences"


def _case_files() -> Iterable[bytes]:
    return [case.to_json().encode() for case, _ in _blocks()]


@target(
    "case", "a case of a campaign, replayed", _case_files, "laboratory.cases", "runtime", text=True
)
def _read_case(data: bytes) -> str:
    """Replay a case. Its verifier must find verdicts and not fail, whatever the case contains."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "not UTF-8"
    case = Case.from_json(text)
    verdicts = case.play(case.shrunk)
    if any(verdict.startswith("!") for verdict in verdicts):
        raise DefensiveFailure(f"a case ends in {verdicts}")
    return "as expected" if verdicts == case.expected else "another verdict"


@target("liveness", "the seed of a story of a whole network", lambda: [b"0"], "runtime.relay")
def _read_story(data: bytes) -> str:
    tell(data[:64], 30)
    return "kept"


def _differences() -> Iterable[bytes]:
    """Yield files of differences, as if the other verifier had not found a bad seal."""
    for case, candidate, _ in judged_blocks():
        document = case_of(case.judging, candidate.encode(), 1)
        difference = VerifierDifference(
            case.strategies, case.shrunk, document, "BadSeal", "no offence", ("BadSeal",)
        )
        yield difference.to_json().encode()


_ROOMS: Final = ("laboratory.differences", "laboratory.cases")


@target(
    "difference",
    "a kept difference of two verifiers, judged again",
    _differences,
    *_ROOMS,
    text=True,
)
@from_file("difference.json")
def _read_difference(path: Path) -> str:
    difference = read_difference(path)
    failure = next((verdict for verdict in difference.found or () if verdict.startswith("!")), None)
    if failure is not None:
        raise DefensiveFailure(f"a difference ends in {failure}")
    return difference.now

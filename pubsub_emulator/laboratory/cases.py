"""Cases of campaigns in small files, which contain all that is needed to judge them again.

    format       pubsub-case/1
    label        the origin: seed, world, block, case
    strategies   names, in order; empty for the honest block itself
    budget       null: a block was judged; a number: only a proof was judged, under that budget in
                 bytes, and `block` is null
    parent       the parent's header
    state        the parent's whole state, top entries by key
    relays       [number, storage root] of every known relay block
    slot_now     the newest slot that a block may claim
    root         the relay root against which a proof is judged
    seeds        the collators' secret seeds, in turn order
    block        the honest block; null if only a proof was judged
    proof        the honest proof, which is also that of `block`
    shrunk       the steps that were applied to it, without those that `verdicts` does not need
    steps        all steps; null if none could be omitted
    expected     all verdicts that had to be found after `shrunk`
    verdicts     the verdicts that were found after `shrunk`; a line that begins with ! is an
                 exception in the verifier

Bytes are hexadecimal digits with 0x. The proof of `block` is left out of its bytes and is inserted
from `proof`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from pubsub_emulator.collator.cheats.expectation import list_verdicts, set_verdicts
from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.collator.cheats.steps import (
    BadStep,
    CheatStep,
    Draft,
    Stuff,
    apply_to_proof,
    from_json,
    to_json,
)
from pubsub_emulator.emulator.fixtures import (
    U32,
    U64,
    HashHex,
    Hex,
    checked,
    decoded,
    state_entries,
)
from pubsub_emulator.files.untrusted import parse_json, read_bytes
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.types import Hash, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import ImpossibleConfig, runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.parachain import validate
from pubsub_emulator.runtime.parachain.block import MAX_CANDIDATE_BYTES, Candidate, ChainHead
from pubsub_emulator.runtime.rules import SHIPPED, Rules

FORMAT = "pubsub-case/1"
"""The value of `format`."""

Found = tuple[str, ...]
"""The names of verdicts in the order of the verifier, each once. It is empty for an accepted block.
"""


class BadCase(PubsubError):
    """A file that is not a valid case."""


@dataclass(frozen=True, slots=True)
class JudgingContext:
    """The data with which a verifier judges proofs or blocks on one parent."""

    parent: ChainHead
    """The header and state of the parent."""
    relays: tuple[tuple[RelayBlockNumber, Hash], ...]
    """Known relay blocks with their storage roots."""
    slot_now: Slot
    """The newest slot that a block may claim."""
    root: Hash
    """The relay root against which a proof is judged."""
    budget: int | None
    """The budget of a proof in bytes, or `None` if blocks are judged."""

    @staticmethod
    def of(situation: Situation) -> "JudgingContext":
        """Return the context of a situation."""
        known = sorted(
            (relay.number, relay.storage_root) for relay in (situation.relay, *situation.others)
        )
        root = situation.relay.storage_root
        return JudgingContext(
            situation.parent, tuple(known), situation.slot_now, root=root, budget=situation.budget
        )

    def context(self, candidate: Candidate) -> validate.RelayContext:
        """Return the relay chain's facts about the relay parent of a candidate."""
        number = candidate.inherent.relay_parent_number
        root = next((root for known_number, root in self.relays if known_number == number), None)
        return validate.RelayContext(number, root, self.slot_now)

    def judge(self, candidate: Candidate) -> Found:
        """Return the verifier's verdicts on a block.

        An exception in the verifier is the only verdict, with an exclamation mark before it.
        """
        try:
            refusal = validate.judge_block(self.parent, candidate, self.context(candidate))[1]
        except validate.BadState as fault:
            raise BadCase(f"state: {fault}") from fault
        except Exception as failure:  # noqa: BLE001  # a campaign looks for any failure of a verifier
            return (f"!{type(failure).__name__}: {failure}",)
        if refusal is None:
            return ()
        return tuple(dict.fromkeys(offence.verdict.value for offence in refusal.evidence))

    def judge_bytes(self, raw: bytes) -> Found | None:
        """Return the verifier's verdicts on a block in bytes, or `None` if they do not decode."""
        try:
            return self.judge(Candidate.decode(raw))
        except ScaleError:
            return None

    def judge_proof(self, view: SubscriberView, proof: tuple[bytes, ...]) -> Found:
        """Return the verifier's verdicts on a proof without its block."""
        try:
            order = validate.check_node_order(proof)
            offences = [*order, *validate.judge_proof(view, self.root, proof, self.budget or 0)[1]]
        except ScaleError as fault:
            raise BadCase(f"state: {fault}") from fault
        except Exception as failure:  # noqa: BLE001  # a campaign looks for any failure of a verifier
            return (f"!{type(failure).__name__}: {failure}",)
        return tuple(dict.fromkeys(offence.verdict.value for offence in offences))


@dataclass(frozen=True, slots=True)
class Case:
    """A case. The docstring of the module describes its fields."""

    label: str
    strategies: tuple[str, ...]
    judging: JudgingContext
    seeds: tuple[bytes, ...]
    block: Candidate | None
    proof: tuple[bytes, ...]
    steps: tuple[CheatStep, ...]
    shrunk: tuple[CheatStep, ...]
    expected: Found
    verdicts: Found

    def play(self, steps: tuple[CheatStep, ...]) -> Found:
        """Return the verifier's verdicts on the honest block or proof after these steps."""
        if self.block is None:
            storage = Storage(self.judging.parent.state.fork())
            return self.judging.judge_proof(
                SubscriberView(storage, runtime_spec(storage), self.judging.parent.rules),
                self.changed_proof(steps),
            )
        return self.judging.judge(self.changed_block(self.block, steps))

    def changed_block(self, block: Candidate, steps: tuple[CheatStep, ...]) -> Candidate:
        """Return the block after these steps, with a new seal."""
        draft = Draft.of(block)
        for step in steps:
            step.apply(draft)
        return draft.sealed_by(self.seeds)

    def changed_proof(self, steps: tuple[CheatStep, ...]) -> tuple[bytes, ...]:
        """Return the list of nodes after these steps."""
        return apply_to_proof(self.proof, steps)

    def expected_of_proof(self, steps: tuple[CheatStep, ...]) -> Found:
        """Return the verdicts that must be found on the changed list of nodes."""
        nodes = self.changed_proof(steps)
        canonical = {blake2_256(node): node for node in self.proof}
        present = {blake2_256(node) for node in nodes}
        verdicts = [*list_verdicts(nodes), *set_verdicts(canonical, self.judging.root, present)]
        return tuple(verdict.value for verdict in verdicts)

    def to_json(self) -> str:
        """Return the content of the file."""
        judging = self.judging
        block = self.block
        bare = None if block is None else replace(block, inherent=replace(block.inherent, proof=()))
        rows: dict[str, object] = {
            "format": FORMAT,
            "label": self.label,
            "strategies": list(self.strategies),
            "budget": judging.budget,
            "parent": hexed(judging.parent.header.encode()),
            "relays": [[number, hexed(root)] for number, root in judging.relays],
            "slot_now": judging.slot_now,
            "root": hexed(judging.root),
            "seeds": [hexed(seed) for seed in self.seeds],
            "block": None if bare is None else hexed(bare.encode()),
            "expected": list(self.expected),
            "verdicts": list(self.verdicts),
            "shrunk": [to_json(step) for step in self.shrunk],
            "steps": None if self.steps == self.shrunk else [to_json(step) for step in self.steps],
            "proof": [hexed(node) for node in self.proof],
            "state": {
                hexed(key): hexed(value) for key, value in judging.parent.state.top_entries()
            },
        }
        body = ",\n".join(f"{json.dumps(name)}: {_lines(value)}" for name, value in rows.items())
        return f"{{\n{body}\n}}\n"

    @staticmethod
    def from_json(text: str, rules: Rules = SHIPPED) -> "Case":
        """Return the case in the content of a file, to be judged by `rules`. Raises `BadCase`."""
        return checked(_File, parse_json(text.encode(), "no case", BadCase), BadCase).case(rules)


class _File(BaseModel):
    """The JSON document of a case."""

    format: Literal["pubsub-case/1"]
    label: str
    strategies: tuple[str, ...]
    budget: U64 | None
    parent: Hex
    state: dict[Hex, Hex]
    relays: tuple[tuple[U32, HashHex], ...]
    slot_now: U64
    root: HashHex
    seeds: Annotated[tuple[HashHex, ...], Field(min_length=1)]
    block: Hex | None
    proof: tuple[Hex, ...]
    shrunk: list[object]
    steps: list[object] | None
    expected: tuple[str, ...]
    verdicts: tuple[str, ...]

    def case(self, rules: Rules) -> Case:
        """Return the case. Raises `BadCase`."""
        if (self.block is None) != (self.budget is not None):
            raise BadCase("budget: a case of a proof needs one, and a case of a block has none")
        proof = tuple(map(unhex, self.proof))
        shrunk = _steps("shrunk", self.shrunk)
        return Case(
            self.label,
            self.strategies,
            judging_context(
                self.parent,
                self.state,
                self.relays,
                slot_now=self.slot_now,
                root=self.root,
                budget=self.budget,
                rules=rules,
            ),
            seeds=tuple(map(unhex, self.seeds)),
            block=None if self.block is None else _block(self.block, proof),
            proof=proof,
            steps=shrunk if self.steps is None else _steps("steps", self.steps),
            shrunk=shrunk,
            expected=self.expected,
            verdicts=self.verdicts,
        )


def judging_context(  # noqa: PLR0917  # the fields of a case
    parent: str,
    state: Mapping[str, str],
    relays: Iterable[tuple[int, str]],
    slot_now: int,
    root: str,
    budget: int | None,
    rules: Rules = SHIPPED,
) -> JudgingContext:
    """Return the context in these fields of a case, with bytes as hexadecimal digits.

    Raises `BadCase`.
    """
    state_before = State.from_entries(state_entries("state", state.items(), BadCase))
    try:
        validate.check_state(Storage(state_before), rules=rules)
    except (ScaleError, ImpossibleConfig) as fault:
        raise BadCase(f"state: {fault}") from fault
    return JudgingContext(
        ChainHead(decoded("parent", Header.decode, parent, BadCase), state_before, rules),
        tuple(
            (RelayBlockNumber(number), Hash(unhex(root_digits))) for number, root_digits in relays
        ),
        Slot(slot_now),
        root=Hash(unhex(root)),
        budget=budget,
    )


def _block(text: str, proof: tuple[bytes, ...]) -> Candidate:
    bare = decoded("block", Candidate.decode, text, BadCase)
    if bare.header.aura_slot() is None:
        raise BadCase("block: its header has no slot")
    return replace(bare, inherent=replace(bare.inherent, proof=proof))


def _steps(name: str, rows: list[object]) -> tuple[CheatStep, ...]:
    """Return the steps of a case. Raises `BadCase`."""
    try:
        steps = tuple(map(from_json, rows))
    except BadStep as fault:
        raise BadCase(f"{name}: {fault}") from fault
    # These steps add messages of any size, so that a short file could use much memory.
    stuffed = sum(step.size for step in steps if isinstance(step, Stuff))
    if stuffed > MAX_CANDIDATE_BYTES:
        raise BadCase(f"{name}: messages of {stuffed} bytes, more than a block can hold")
    return steps


def _lines(value: object) -> str:
    """Return JSON with one element per line, so that people can compare cases."""
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {json.dumps(item)}" for item in value) + "\n]"
    if isinstance(value, dict) and value:
        lines = (f"  {json.dumps(name)}: {json.dumps(item)}" for name, item in value.items())
        return "{\n" + ",\n".join(lines) + "\n}"
    return json.dumps(value)


def write_case(case: Case, folder: Path) -> Path:
    """Write a case into an existing folder and return the file.

    The name is derived from the content, so that equal cases have the same file.
    """
    text = case.to_json()
    strategies = "-".join(case.strategies[:2]) or "honest"
    path = folder / f"{strategies}-{blake2_256(text.encode()).hex()[:12]}.json"
    path.write_text(text, encoding="utf-8")
    return path


def read_case(path: Path, rules: Rules = SHIPPED) -> Case:
    """Return the case in a file, to be judged by `rules`. Raises `BadCase`."""
    try:
        return Case.from_json(read_bytes(path, error=BadCase).decode(), rules)
    except UnicodeDecodeError as fault:
        raise BadCase(f"{path}: not UTF-8 at byte {fault.start}") from fault
    except BadCase as fault:
        raise BadCase(
            str(fault) if str(fault).startswith(str(path)) else f"{path}: {fault}"
        ) from fault

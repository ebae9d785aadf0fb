"""One case of a campaign as a small file that can be played again: everything needed to judge it, and nothing else.

    format       pubsub-case/1
    label        where it came from: seed, world, block, case
    strategies   names, in order; empty for the honest block itself
    budget       null: a block was judged; a number: a proof alone, under that budget in bytes
    parent       the parent's header
    state        the parent's whole state, top entries by key
    relays       [number, storage root] of every relay block that is known, and slot_now
    root         the relay root against which a proof alone is judged
    seeds        the collators' secret seeds, in turn order
    block        the honest block; null for a proof alone
    proof        the honest proof; the block's own stands in it, too
    shrunk       what was done to it, without all that is not needed for `verdicts`
    steps        the same in full; null where nothing could be left out
    expected     the verdicts that had to be found against `shrunk`, all of them
    verdicts     those that were found against `shrunk`; a line starting with ! is the failure of the verifier itself

Bytes are hex after 0x. A block's proof is left out of `block` and put back from `proof` (it would stand there twice).
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pubsub_emulator.collator.cheats.expectation import list_verdicts, set_verdicts
from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.collator.cheats.steps import BadStep, Draft, Json, Step, apply_to_proof, from_json, to_json
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.primitives.types import Hash, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.parachain.block import Candidate, InvalidBlock
from pubsub_emulator.runtime.parachain.execute import runtime_spec
from pubsub_emulator.runtime.parachain.validate import RelayContext, check_list, judge_proof, validate_block

FORMAT = "pubsub-case/1"

Found = tuple[str, ...]
"""Verdicts by name, in their order, each once; empty for a block that was accepted."""


class BadCase(PubsubError):
    """A file that holds no case; the message says why."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What a verifier knows: the same for every proof or block that is tried on one parent."""

    parent: Header
    state: State
    relays: tuple[tuple[RelayBlockNumber, Hash], ...]
    slot_now: Slot
    root: Hash
    budget: int | None

    @staticmethod
    def of(situation: Situation) -> "Bench":
        """What a verifier knows in that situation."""
        known = sorted((relay.number, relay.storage_root) for relay in (situation.relay, *situation.others))
        root = situation.relay.storage_root
        return Bench(situation.parent, situation.state, tuple(known), situation.slot_now, root, situation.budget)

    def judge(self, candidate: Candidate) -> Found:
        """The verifier's verdicts on a block."""
        number = candidate.inherent.relay_parent_number
        root = next((root for at, root in self.relays if at == number), None)
        context = RelayContext(RelayBlockNumber(number), root, self.slot_now)
        try:
            validate_block(self.parent, self.state, candidate, context)
        except InvalidBlock as refusal:
            return tuple(dict.fromkeys(offence.verdict.value for offence in refusal.evidence))
        except Exception as failure:  # noqa: BLE001  # that a verifier fails at all is what a campaign looks for
            return (f"!{type(failure).__name__}: {failure}",)
        return ()

    def judge_proof(self, view: SubscriberView, proof: tuple[bytes, ...]) -> Found:
        """The verifier's verdicts on a proof alone."""
        try:
            offences = [*check_list(proof), *judge_proof(view, self.root, proof, self.budget or 0)[1]]
        except Exception as failure:  # noqa: BLE001  # as above
            return (f"!{type(failure).__name__}: {failure}",)
        return tuple(dict.fromkeys(offence.verdict.value for offence in offences))


@dataclass(frozen=True, slots=True)
class Case:
    """A case as the module describes it."""

    label: str
    strategies: tuple[str, ...]
    bench: Bench
    seeds: tuple[bytes, ...]
    block: Candidate | None
    proof: tuple[bytes, ...]
    steps: tuple[Step, ...]
    shrunk: tuple[Step, ...]
    expected: Found
    verdicts: Found

    def play(self, steps: tuple[Step, ...]) -> Found:
        """The verifier's verdicts on the honest block with these steps done to it."""
        if self.block is None:
            storage = Storage(self.bench.state.fork())
            return self.bench.judge_proof(SubscriberView(storage, runtime_spec(storage)), self.changed_proof(steps))
        draft = Draft.of(self.block)
        for step in steps:
            step.apply(draft)
        return self.bench.judge(draft.sealed_by(self.seeds))

    def changed_proof(self, steps: tuple[Step, ...]) -> tuple[bytes, ...]:
        """The list of nodes that these steps lead to."""
        return apply_to_proof(self.proof, steps)

    def expected_of_proof(self, steps: tuple[Step, ...]) -> Found:
        """What the list of nodes alone must be refused for, the honest one being `proof`."""
        nodes = self.changed_proof(steps)
        canonical = {blake2_256(node): node for node in self.proof}
        present = {blake2_256(node) for node in nodes}
        found = [*list_verdicts(nodes), *set_verdicts(canonical, self.bench.root, present)]
        return tuple(verdict.value for verdict in found)

    def to_json(self) -> str:
        """The file."""
        bench = self.bench
        block = None
        if self.block is not None:
            block = replace(self.block, inherent=replace(self.block.inherent, proof=()))
        rows: dict[str, Any] = {
            "format": FORMAT,
            "label": self.label,
            "strategies": list(self.strategies),
            "budget": bench.budget,
            "parent": _hex(bench.parent.encode()),
            "relays": [[number, _hex(root)] for number, root in bench.relays],
            "slot_now": bench.slot_now,
            "root": _hex(bench.root),
            "seeds": [_hex(seed) for seed in self.seeds],
            "block": None if block is None else _hex(block.encode()),
            "expected": list(self.expected),
            "verdicts": list(self.verdicts),
            "shrunk": [to_json(step) for step in self.shrunk],
            "steps": None if self.steps == self.shrunk else [to_json(step) for step in self.steps],
            "proof": [_hex(node) for node in self.proof],
            "state": {_hex(key): _hex(value) for key, value in bench.state.top_entries()},
        }
        body = ",\n".join(f"{json.dumps(name)}: {_lines(value)}" for name, value in rows.items())
        return f"{{\n{body}\n}}\n"

    @staticmethod
    def from_json(text: str) -> "Case":
        """The case in a file. Raises `BadCase`."""
        try:
            return _read(json.loads(text))
        except (ValueError, KeyError, TypeError, ScaleError, BadStep, AttributeError) as fault:
            raise BadCase(f"no case: {type(fault).__name__}: {fault}") from fault


def _read(rows: dict[str, Any]) -> Case:
    if rows["format"] != FORMAT:
        raise BadCase(f"format {rows['format']!r}, not {FORMAT}")
    entries = [(_bytes(key), _bytes(value)) for key, value in rows["state"].items()]
    if any(key.startswith(CHILD_STORAGE_PREFIX) for key, _ in entries):
        raise BadCase("a parachain's state holds no child tries")
    bench = Bench(
        Header.decode(_bytes(rows["parent"])),
        State.from_entries(entries),
        tuple((RelayBlockNumber(number), Hash(_bytes(root))) for number, root in rows["relays"]),
        Slot(rows["slot_now"]),
        Hash(_bytes(rows["root"])),
        rows["budget"],
    )
    proof = tuple(_bytes(node) for node in rows["proof"])
    block = None
    if rows["block"] is not None:
        bare = Candidate.decode(_bytes(rows["block"]))
        block = replace(bare, inherent=replace(bare.inherent, proof=proof))
    shrunk = tuple(from_json(step) for step in rows["shrunk"])
    return Case(
        rows["label"],
        tuple(rows["strategies"]),
        bench,
        tuple(_bytes(seed) for seed in rows["seeds"]),
        block,
        proof,
        shrunk if rows["steps"] is None else tuple(from_json(step) for step in rows["steps"]),
        shrunk,
        tuple(rows["expected"]),
        tuple(rows["verdicts"]),
    )


def _lines(value: object) -> str:
    """JSON with one element a line, so that two cases can be compared by eye."""
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {json.dumps(item)}" for item in value) + "\n]"
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()) + "\n}"
    return json.dumps(value)


def _hex(data: bytes) -> str:
    return f"0x{data.hex()}"


def _bytes(text: str) -> bytes:
    if not text.startswith("0x"):
        raise BadCase(f"not hex: {text[:20]!r}")
    return bytes.fromhex(text[2:])


def write_case(case: Case, folder: Path) -> Path:
    """Write a case into a folder that exists, under a name that its contents give; returns the file."""
    text = case.to_json()
    what = "-".join(case.strategies[:2]) or "honest"
    path = folder / f"{what}-{blake2_256(text.encode()).hex()[:12]}.json"
    path.write_text(text, encoding="utf-8")
    return path


def read_case(path: Path) -> Case:
    """The case in a file. Raises `BadCase`, `OSError`."""
    return Case.from_json(path.read_text(encoding="utf-8"))


__all__ = ["BadCase", "Bench", "Case", "Found", "Json", "read_case", "write_case"]

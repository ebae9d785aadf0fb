"""Stored differences of two verifiers (see `verifier.keep`), which our verifier judges again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeGuard

from pydantic import BaseModel

from pubsub_emulator.emulator.fixtures import U32, U64, HashHex, Hex, checked
from pubsub_emulator.files.untrusted import read_json
from pubsub_emulator.laboratory.cases import BadCase, Found, JudgingContext, judging_context
from pubsub_emulator.primitives.hexadecimal import unhex

_MARKS: Final = frozenset({"case", "steps", "ours", "theirs"})
"""The fields by which a stored difference is recognized."""
_BYTES: Final = frozenset({"decodes", "undecodable"})
"""The results if only decoding was compared."""
_NOBODY: Final = f"0x{bytes(32).hex()}"
"""A root for a context without one. Only proofs without blocks are judged against this root."""


@dataclass(frozen=True, slots=True)
class KeptDifference:
    """A stored case with different results of two verifiers."""

    strategies: tuple[str, ...]
    """The strategies that led to the block."""
    steps: int
    """The number of steps."""
    chain: int
    """The id of the parachain."""
    judging: JudgingContext
    raw: bytes
    """The bytes of the block."""
    ours: str
    """The stored result of our verifier."""
    theirs: str
    """The stored result of the other verifier."""
    found: Found | None
    """The verdicts that our verifier finds now, or `None` if the block does not decode."""
    now: str
    """`found` in the form of `ours` and `theirs`."""


def is_difference(document: object) -> TypeGuard[dict[str, object]]:
    """Return whether a JSON document is a stored difference."""
    return isinstance(document, dict) and document.keys() >= _MARKS


def read_difference(path: Path) -> KeptDifference:
    """Return the difference in a file, judged again. Raises `BadCase`."""
    try:
        return _read(read_json(path, error=BadCase))
    except BadCase as fault:
        # Errors of reading name the file already.
        message = str(fault)
        if not message.startswith(str(path)):
            message = f"{path}: {message}"
        raise BadCase(message) from fault


class _Relay(BaseModel):
    """The relay chain's facts about a case's relay parent."""

    number: U32
    storage_root: HashHex | None
    slot_now: U64


class _Case(BaseModel):
    """A case in the form that a verifier reads, see `verifier`."""

    format: Literal["pubsub-verifier/1"]
    chain: U32
    parent_header: Hex
    pre_state: tuple[tuple[Hex, Hex], ...]
    relay: _Relay
    candidate: Hex


class _Document(BaseModel):
    """The JSON document of a stored difference, see `verifier.VerifierDifference`."""

    strategies: tuple[str, ...]
    steps: list[object]
    case: _Case
    ours: str
    theirs: str
    judged: tuple[str, ...] | None = None


def _read(document: object) -> KeptDifference:
    """Return the difference in a JSON document, judged again. Raises `BadCase`."""
    if not is_difference(document):
        raise BadCase("not a difference of two verifiers")
    stored = checked(_Document, document, BadCase)
    case = stored.case
    raw = unhex(stored.case.candidate)
    root = case.relay.storage_root
    relays = () if root is None else ((case.relay.number, root),)
    judging = judging_context(
        case.parent_header,
        dict(case.pre_state),
        relays,
        slot_now=case.relay.slot_now,
        root=root or _NOBODY,
        budget=None,
    )
    verdicts = judging.judge_bytes(raw)
    supported = None if stored.judged is None else frozenset(stored.judged)
    decoding_only = {stored.ours, stored.theirs} <= _BYTES
    present_result = in_words(verdicts, supported, decoding_only=decoding_only)
    return KeptDifference(
        strategies=stored.strategies,
        steps=len(stored.steps),
        chain=case.chain,
        judging=judging,
        raw=raw,
        ours=stored.ours,
        theirs=stored.theirs,
        found=verdicts,
        now=present_result,
    )


def in_words(verdicts: Found | None, judged: frozenset[str] | None, *, decoding_only: bool) -> str:
    """Return verdicts as a text, in the form that is compared.

    Verdicts that are not in `judged` are left out, because the other verifier does not support
    them. `decoding_only` says that only the decoding of the block was compared.
    """
    if verdicts is None:
        return "undecodable"
    if decoding_only:
        return "decodes"
    common = [name for name in verdicts if judged is None or name in judged or name.startswith("!")]
    return "+".join(sorted(common)) or "no offence"

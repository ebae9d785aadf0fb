"""A kept difference of two verifiers (`verifier.keep`), read from its file and judged by ours again."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeGuard, TypeVar

from pubsub_emulator.emulator.untrusted import read_json
from pubsub_emulator.laboratory.cases import BadCase, Found, JudgingContext, read_context
from pubsub_emulator.laboratory.verifier import FORMAT
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.runtime.parachain.block import Candidate

T = TypeVar("T")
_MARKS: Final = frozenset({"case", "steps", "ours", "theirs"})
_BYTES: Final = frozenset({"decodes", "undecodable"})
_NOBODY: Final = f"0x{bytes(32).hex()}"


@dataclass(frozen=True, slots=True)
class KeptDifference:
    """A case on which two verifiers differed: what each said then, and what ours finds now.

    `found` has our verdicts, `None` for bytes that do not decode. `now` is `found` in the words of `ours` and `theirs`:
    only verdicts that the other verifier judges.
    """

    strategies: tuple[str, ...]
    steps: int
    chain: int
    judging: JudgingContext
    raw: bytes
    ours: str
    theirs: str
    found: Found | None
    now: str


def is_difference(document: object) -> TypeGuard[dict[str, object]]:
    """Whether a JSON document is a kept difference."""
    return isinstance(document, dict) and document.keys() >= _MARKS


def read_difference(path: Path) -> KeptDifference:
    """The difference in a file, judged again. Raises `BadCase`."""
    try:
        return _read(read_json(path, error=BadCase))
    except BadCase as fault:
        raise BadCase(str(fault) if str(fault).startswith(str(path)) else f"{path}: {fault}") from fault


def _read(document: object) -> KeptDifference:
    if not is_difference(document):
        raise BadCase("not a difference of two verifiers")
    case = document["case"]
    if not isinstance(case, dict) or case.get("format") != FORMAT:
        raise BadCase(f"case.format: not {FORMAT!r}")
    raw = _field(case, "candidate", "0x and hexadecimal digits", _bytes)
    judging = _context(case)
    try:
        found: Found | None = judging.judge(Candidate.decode(raw))
    except ScaleError:
        found = None
    ours, theirs = (_field(document, name, "text", _text) for name in ("ours", "theirs"))
    judged = _field(document, "judged", "a list of verdicts", _texts) if "judged" in document else None
    return KeptDifference(
        _field(document, "strategies", "a list of names", _texts),
        len(_field(document, "steps", "a list of steps", _list)),
        _field(case, "chain", "a parachain's id", _number),
        judging,
        raw,
        ours,
        theirs,
        found,
        _in_words(found, None if judged is None else frozenset(judged), alone={ours, theirs} <= _BYTES),
    )


def _in_words(found: Found | None, judged: frozenset[str] | None, *, alone: bool) -> str:
    """A verdict in the words of a comparison; with `alone`, only whether the bytes decode was compared."""
    if found is None:
        return "undecodable"
    if alone:
        return "decodes"
    common = [name for name in found if judged is None or name in judged or name.startswith("!")]
    return "+".join(sorted(common)) or "no offence"


def _context(case: dict[str, object]) -> JudgingContext:
    relay = _field(case, "relay", "a table", _table)
    for name in ("number", "storage_root", "slot_now"):
        if name not in relay:
            raise BadCase(f"case: relay.{name}: missing")
    root = relay["storage_root"]
    return read_context(
        {
            "parent": case.get("parent_header"),
            "state": dict(_field(case, "pre_state", "a list of keys and values", _pairs)),
            "relays": [] if root is None else [[relay["number"], root]],
            "slot_now": relay["slot_now"],
            "root": _NOBODY if root is None else root,
            "budget": None,
        }
    )


def _field(document: dict[str, object], name: str, what: str, read: Callable[[Any], T]) -> T:
    """A field, read by a function that raises `TypeError` or `ValueError` for another type. Raises `BadCase`."""
    try:
        return read(document.get(name))
    except (TypeError, ValueError):
        raise BadCase(f"{name}: not {what}: {str(document.get(name))[:20]!r}") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _bytes(value: object) -> bytes:
    text = _text(value)
    if not text.startswith("0x"):
        raise ValueError
    return bytes.fromhex(text[2:])


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, _list(value)))


def _table(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _pairs(value: object) -> list[tuple[str, str]]:
    return [(_text(key), _text(each)) for key, each in map(_list, _list(value))]

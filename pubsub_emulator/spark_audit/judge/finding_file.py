"""A finding in a file of its own, which can be checked without any other file.

The file is a JSON object with `format`, the columns of the table `findings` (bytes as hex with 0x),
and `digest`, the blake2b-256 of everything else in canonical JSON. The evidence is judged again and
must show the block, the collator and the code that the file states. This works offline and without
Spark or Arrow.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pubsub_emulator.files.untrusted import read_json
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.types import U32_MAX, U64_MAX
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.judge import findings
from pubsub_emulator.spark_audit.judge.evidence import EvidenceError, Judgement, judge

FORMAT: Final = "pubsub-finding/1"
"""Value of `format`."""

_BYTES: Final = {"id": 32, "block": 32, "collator": 32, "evidence": None}
"""Columns of bytes, with their length if it is fixed."""
_NUMBERS: Final = {"chain": U32_MAX, "segment": U32_MAX, "position": U64_MAX, "number": U32_MAX}
"""Columns of numbers, with their largest value."""
_TEXTS: Final = ("network", "code", "severity", "detail", "verifier")
_OPTIONAL: Final = frozenset({"segment", "position", "number", "block", "collator"})
"""Columns that may be null."""
_COLUMNS: Final = (*_BYTES, *_NUMBERS, *_TEXTS)


class FindingError(PubsubError):
    """A file without a valid finding, or with one that its evidence does not show."""


@dataclass(frozen=True, slots=True)
class CheckedFinding:
    """A finding that was judged again."""

    finding: Row
    """Its columns."""
    judgement: Judgement
    """The result of judging its evidence."""

    @property
    def proven(self) -> bool:
        """Whether the evidence proves the code by itself. Figures, for example, do not."""
        return self.judgement.code is not None and self.judgement.proves


def finding_text(row: Row) -> str:
    """Return the content of the file for a row of `findings`."""
    body: dict[str, object] = {"format": FORMAT}
    for name in _COLUMNS:
        value = row[name]
        body[name] = f"0x{value.hex()}" if isinstance(value, bytes) else value
    body["digest"] = _digest(body)
    return json.dumps(body, indent=2) + "\n"


def read_finding(path: Path) -> Row:
    """Return the finding in a file, without judging it.

    Raises `FindingError` if the file is malformed or was altered after it was written.
    """
    body = read_json(path, error=FindingError)
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise FindingError(f"{path}: not a finding: `format` is not {FORMAT!r}")
    unexpected = sorted(body.keys() ^ {"format", "digest", *_COLUMNS})
    if unexpected:
        raise FindingError(f"{path}: {unexpected[0]} is missing or unknown")
    row = {name: _value(path, name, body[name]) for name in _COLUMNS}
    if body["digest"] != _digest(body):
        raise FindingError(f"{path}: the file was altered: its digest does not match")
    return row


def check_finding(path: Path, rules: Rules = SHIPPED) -> CheckedFinding:
    """Judge the finding in a file again, by `rules` if its chain names them.

    Raises `FindingError` if its evidence does not show it.
    """
    row = read_finding(path)
    try:
        judgement = judge(row["evidence"], rules)
    except EvidenceError as error:
        raise FindingError(f"{path}: {error}") from None
    if judgement.kind != "figures" and judgement.code != row["code"]:
        shown_code = "no fault" if judgement.code is None else judgement.code
        raise FindingError(
            f"{path}: the finding says {row['code']}, its evidence shows {shown_code}:"
            f" {judgement.detail}"
        )
    for name, value in judgement.facts.items():
        if row[name] != value:
            raise FindingError(
                f"{path}: {name} is {_shown(row[name])}, in the evidence it is {_shown(value)}"
            )
    subject = _subject(judgement, row)
    if subject is not None and row["id"] != findings.finding_id(
        row["network"], row["chain"], row["code"], subject=subject
    ):
        raise FindingError(f"{path}: the id is not that of this finding")
    return CheckedFinding(row, judgement)


def _subject(judgement: Judgement, row: Row) -> bytes | None:
    """Return the subject from which the finding's id was made.

    Returns `None` for figures, or if the row lacks its position or segment. Then the id cannot be
    checked.
    """
    if judgement.kind == "block" and row["position"] is not None:
        position: int = row["position"]
        return position.to_bytes(8, "little") + bytes(row["block"] or b"")
    if judgement.kind == "seam" and row["segment"] is not None:
        segment: int = row["segment"]
        return segment.to_bytes(4, "little")
    if judgement.kind == "equivocation":
        reader = Reader(row["evidence"])
        # The version and the kind, which `judge` has read before.
        reader.take(1)
        reader.bytes_()
        author = reader.take(32)
        slot = Header.decode(reader.bytes_()).aura_slot() or 0
        return slot.to_bytes(8, "little") + author
    return None


def _value(path: Path, name: str, value: object) -> object:
    """Convert a field of the file to the value of its column.

    Raises `FindingError` if it has the wrong type.
    """
    if value is None and name in _OPTIONAL:
        return None
    if name in _TEXTS and isinstance(value, str):
        return value
    if (
        name in _NUMBERS
        and isinstance(value, int)
        and not isinstance(value, bool)
        and 0 <= value <= _NUMBERS[name]
    ):
        return value
    if name in _BYTES and isinstance(value, str) and value.startswith("0x"):
        try:
            data = bytes.fromhex(value[2:])
        except ValueError:
            raise FindingError(f"{path}: {name} is not hex") from None
        if _BYTES[name] in {None, len(data)}:
            return data
    raise FindingError(f"{path}: {name} has the wrong type")


def _digest(body: Mapping[str, object]) -> str:
    """Return the digest of all fields except `digest`."""
    digested = {name: value for name, value in body.items() if name != "digest"}
    return blake2_256(json.dumps(digested, sort_keys=True, separators=(",", ":")).encode()).hex()


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)

"""Guides a long campaign: later cases are made from those that met new verdicts or reached new lines of the verifier.

A folder can keep a corpus: `progress.json` with the next world of each seed, and cases that `pubsub replay` plays. A
campaign with the same seed goes on at the next world; one that was interrupted is begun again.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pubsub_emulator.collator.cheats.steps import Step
from pubsub_emulator.collator.draws import Draws
from pubsub_emulator.emulator.files import write_whole
from pubsub_emulator.emulator.untrusted import read_json
from pubsub_emulator.laboratory.cases import Case, Found, read_case, write_case
from pubsub_emulator.laboratory.mutation import Lines
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256

FORMAT: Final = "pubsub-corpus/1"
PROGRESS: Final = "progress.json"
TRACED: Final = 16
"""One in so many cases is traced by line."""

MOST_KEPT: Final = 2000
"""The most cases of a corpus."""

_MOST_STEPS: Final = 64
_VERIFIER: Final = tuple(
    f"pubsub_emulator.{name}"
    for name in ("runtime.parachain", "runtime.pallet_subscriber", "runtime.framework.message_chains", "trie")
)


class BadCorpus(PubsubError):
    """The folder is not a corpus; the message names the file."""


Made = tuple[tuple[str, ...], tuple[Step, ...]]
"""The names of strategies, and their steps."""


@dataclass(slots=True)
class Guide:
    """The corpus of a campaign, and what was seen so far."""

    folder: Path | None = None
    kept: list[Made] = field(default_factory=list)
    outcomes: set[tuple[bool, Found]] = field(default_factory=set)
    lines: dict[tuple[str, int], None] = field(default_factory=dict)

    def wants(self, draws: Draws) -> bool:
        """Whether the next case is made from kept ones."""
        return bool(self.kept) and draws.one_in(3)

    def made(self, draws: Draws, fresh: Made) -> Made:
        """Steps of a kept case, some of them left out, with a fresh proposal or steps of another kept case."""
        first = draws.choice(self.kept)
        names, steps = fresh if draws.one_in(2) else _part(draws.choice(self.kept), draws)
        own, part = _part(first, draws)
        joined = (*part, *steps) if draws.one_in(2) else (*steps, *part)
        return tuple(dict.fromkeys((*own, *names))), joined[:_MOST_STEPS]

    def noted(self, draws: Draws) -> "Lines | None":
        """Notes the lines that the next case reaches, if they are to be noted."""
        return Lines(_VERIFIER, {}) if draws.one_in(TRACED) else None

    def is_new(self, found: Found, lines: "Lines | None", *, alone: bool) -> bool:
        """Whether a case showed something new, which is remembered."""
        outcome = (alone, found)
        fresh = [] if lines is None else [line for line in lines.into if line not in self.lines]
        new = outcome not in self.outcomes or bool(fresh)
        self.outcomes.add(outcome)
        self.lines.update(dict.fromkeys(fresh))
        return new

    def keep(self, case: Case) -> None:
        """Add a case that showed something new; into the folder, too, if there is one."""
        if len(self.kept) >= MOST_KEPT:
            return
        self.kept.append((case.strategies, case.steps))
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_case(case, self.folder)

    def remember(self, cases: Iterable[Case]) -> None:
        """Take over the cases of an earlier campaign."""
        for case in cases:
            self.outcomes.add((case.block is None, case.verdicts))
            self.kept.append((case.strategies, case.steps))


def _part(kept: Made, draws: Draws) -> Made:
    """A kept case, or some of its steps."""
    names, steps = kept
    if len(steps) < 2 or draws.one_in(2):
        return kept
    return names, tuple(draws.sample(steps, 1 + draws.below(len(steps) - 1)))


def read_corpus(folder: Path) -> list[Case]:
    """The cases in a folder, in the order of their names; none if there is no such folder. Raises `BadCase`."""
    files = sorted(path for path in folder.glob("*.json") if path.name != PROGRESS) if folder.is_dir() else []
    return [read_case(path) for path in files[:MOST_KEPT]]


def read_progress(folder: Path, seed: bytes) -> dict[str, object]:
    """The progress of the campaign with this seed, empty if it has not begun. Raises `BadCorpus`."""
    found = _progress(folder).get(_name(seed), {})
    if not isinstance(found, dict):
        raise BadCorpus(f"{folder / PROGRESS}: seeds: not a table of tables")
    return found


def write_progress(folder: Path, seed: bytes, progress: dict[str, object]) -> None:
    """Note how far the campaign with this seed came. Raises `BadCorpus`, `OSError`."""
    seeds = {**_progress(folder), _name(seed): progress}
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / PROGRESS, json.dumps({"format": FORMAT, "seeds": seeds}, indent=1) + "\n")


def _progress(folder: Path) -> dict[str, object]:
    path = folder / PROGRESS
    if not path.exists():
        return {}
    content = read_json(path, error=BadCorpus)
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("seeds"), dict):
        raise BadCorpus(f"{path}: not a corpus of this program: its format is not {FORMAT!r}")
    return dict(content["seeds"])


def _name(seed: bytes) -> str:
    is_name = seed.isascii() and seed.decode().isprintable() and len(seed) <= 64
    return seed.decode() if is_name else blake2_256(seed).hex()

"""Guides a long campaign: later cases are made from those that showed something new.

A case is new if it meets other verdicts, or reaches other lines of the verifier, than all before. A
folder can store this corpus. It has `progress.json` with the next world of each seed, and cases
that `pubsub replay` can replay. A campaign with the same seed continues at the next world. A world
that was interrupted is repeated.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pubsub_emulator.collator.cheats.steps import CheatStep
from pubsub_emulator.files.atomic import write_whole
from pubsub_emulator.files.untrusted import read_json
from pubsub_emulator.laboratory.cases import Case, Found, read_case, write_case
from pubsub_emulator.laboratory.mutation import Lines
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.runtime.rules import SHIPPED, Rules

FORMAT: Final = "pubsub-corpus/1"
PROGRESS: Final = "progress.json"
"""The name of the file that stores the progress."""
TRACED: Final = 16
"""One of this many cases is traced by line."""

MOST_KEPT: Final = 2000
"""The maximum number of cases in a corpus."""

_MOST_STEPS: Final = 64
"""The maximum number of steps of a combined case."""
_VERIFIER: Final = tuple(
    f"pubsub_emulator.{name}"
    for name in (
        "runtime.parachain",
        "runtime.pallet_subscriber",
        "runtime.framework.message_chains",
        "trie",
    )
)
"""The modules whose lines are traced."""


class BadCorpus(PubsubError):
    """A folder that is not a corpus. The message names the file."""


Made = tuple[tuple[str, ...], tuple[CheatStep, ...]]
"""The names of strategies, and their steps."""


@dataclass(slots=True)
class Guide:
    """The corpus of a campaign, and everything that was seen so far."""

    folder: Path | None = None
    """The folder to store new cases in, if any."""
    kept: list[Made] = field(default_factory=list)
    """The strategies and steps of the corpus."""
    outcomes: set[tuple[bool, Found]] = field(default_factory=set)
    """The verdicts that were seen, and whether only a proof was judged."""
    lines: dict[tuple[str, int], None] = field(default_factory=dict)
    """The lines of the verifier that were reached. The dictionary is an ordered set."""

    def wants(self, draws: Draws) -> bool:
        """Return whether to make the next case from stored ones. One case in three is."""
        return bool(self.kept) and draws.one_in(3)

    def made(self, draws: Draws, fresh: Made) -> Made:
        """Return strategies and steps of a new case, made from a stored one.

        Some steps of the stored case are combined with those of `fresh`, which is a new proposal,
        or with some of another stored case.
        """
        stored = draws.choice(self.kept)
        if draws.one_in(2):
            names, steps = fresh
        else:
            names, steps = _part(draws.choice(self.kept), draws)
        stored_names, stored_steps = _part(stored, draws)
        joined = (*stored_steps, *steps) if draws.one_in(2) else (*steps, *stored_steps)
        return tuple(dict.fromkeys((*stored_names, *names))), joined[:_MOST_STEPS]

    def noted(self, draws: Draws) -> "Lines | None":
        """Return a recorder of the lines that the next case reaches, or `None` for most cases."""
        return Lines(_VERIFIER, {}) if draws.one_in(TRACED) else None

    def is_new(self, found: Found, lines: "Lines | None", *, proof_only: bool) -> bool:
        """Return whether the verdicts or the lines of a case are new, and remember them.

        `proof_only` says that a proof was judged without its block.
        """
        outcome = (proof_only, found)
        new_lines = [] if lines is None else [line for line in lines.into if line not in self.lines]
        is_new = outcome not in self.outcomes or bool(new_lines)
        self.outcomes.add(outcome)
        self.lines.update(dict.fromkeys(new_lines))
        return is_new

    def keep(self, case: Case) -> None:
        """Add a case to the corpus, and write it into the folder if there is one."""
        if len(self.kept) >= MOST_KEPT:
            return
        self.kept.append((case.strategies, case.steps))
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_case(case, self.folder)

    def remember(self, cases: Iterable[Case]) -> None:
        """Add the cases of an earlier campaign."""
        for case in cases:
            self.outcomes.add((case.block is None, case.verdicts))
            self.kept.append((case.strategies, case.steps))


def _part(stored: Made, draws: Draws) -> Made:
    """Return a stored case, or some of its steps."""
    names, steps = stored
    if len(steps) < 2 or draws.one_in(2):
        return stored
    return names, tuple(draws.sample(steps, 1 + draws.below(len(steps) - 1)))


def read_corpus(folder: Path, rules: Rules = SHIPPED) -> list[Case]:
    """Return the cases in a folder in the order of their names.

    The list is empty if there is no such folder. Raises `BadCase`.
    """
    files = (
        sorted(path for path in folder.glob("*.json") if path.name != PROGRESS)
        if folder.is_dir()
        else []
    )
    return [read_case(path, rules) for path in files[:MOST_KEPT]]


def read_progress(folder: Path, seed: bytes) -> dict[str, object]:
    """Return the progress of the campaign with this seed. It is empty if there was none.

    Raises `BadCorpus`.
    """
    progress = _progress(folder).get(_name(seed), {})
    if not isinstance(progress, dict):
        raise BadCorpus(f"{folder / PROGRESS}: seeds: not a table of tables")
    return progress


def write_progress(folder: Path, seed: bytes, progress: dict[str, object]) -> None:
    """Store the progress of the campaign with this seed. Raises `BadCorpus` or `OSError`."""
    seeds = {**_progress(folder), _name(seed): progress}
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / PROGRESS, json.dumps({"format": FORMAT, "seeds": seeds}, indent=1) + "\n")


def _progress(folder: Path) -> dict[str, object]:
    """Return the progress of all seeds. Raises `BadCorpus`."""
    path = folder / PROGRESS
    if not path.exists():
        return {}
    content = read_json(path, error=BadCorpus)
    if (
        not isinstance(content, dict)
        or content.get("format") != FORMAT
        or not isinstance(content.get("seeds"), dict)
    ):
        raise BadCorpus(f"{path}: not a corpus of this program: its format is not {FORMAT!r}")
    return dict(content["seeds"])


def _name(seed: bytes) -> str:
    """Return the seed as text, or its hash if it is not short and printable."""
    is_name = seed.isascii() and seed.decode().isprintable() and len(seed) <= 64
    return seed.decode() if is_name else blake2_256(seed).hex()

"""The corpus of the laboratory: one case of every strategy, and walks that the stop rule ended.

    python tests/support/laboratory/corpus_cases.py --write

makes every file anew, which is needed when blocks change their form. The smallest of the first
cases found is kept. Cases depend on the strategies and the worlds alone.
"""

import sys
from pathlib import Path
from typing import Final

from pubsub_emulator.collator.cheats import STRATEGIES, for_any_chain, propose
from pubsub_emulator.collator.cheats.situation import Situation
from pubsub_emulator.laboratory import campaign
from pubsub_emulator.laboratory.cases import Case, JudgingContext
from pubsub_emulator.laboratory.worlds import World

FOLDER: Final = Path(__file__).parents[3] / "pubsub_emulator" / "laboratory" / "corpus"
WORLDS: Final = 60
"""Worlds in which cases are looked for."""
BLOCKS: Final = 4
"""Blocks of each world."""
ENOUGH: Final = 16
"""Cases of a strategy of which the smallest is kept."""
STOPPED: Final = (
    "add-cached-node",
    "another-set",
    "any-mutation",
    "as-if-cursor",
    "as-if-not-cached",
    "as-if-smaller-budget",
    "as-if-unchanged",
    "omit-requested-key",
    "omit-value",
    "over-budget",
    "reorder-items",
    "skip-big-node",
    "truncate-early",
)
"""Strategies that also have a case in which the stop rule ended the walk."""


def _case(now: Situation, name: str, label: str) -> Case | None:
    """Return the case of a strategy in a situation, or `None` if it does not apply or is valid."""
    judging = JudgingContext.of(now)
    names, steps = propose(now, (STRATEGIES[name],), label.encode())
    if not steps:
        return None
    due = campaign._due(now, steps)  # the same as in a campaign
    idle = not STRATEGIES[name].meets
    if bool(due) == idle:
        return None
    block = None if now.budget is not None else now.honest
    found = Case(
        f"corpus/{label}",
        names,
        judging,
        seeds=now.seeds,
        block=block,
        proof=now.canonical,
        steps=steps,
        shrunk=steps,
        expected=due,
        verdicts=due,
    )
    return found if found.play(steps) == due else None


def cases() -> dict[str, Case]:
    """Return the corpus by file name."""
    made: dict[str, list[Case]] = {}
    for number in range(WORLDS):
        alone = number % 2 == 1
        world = World(b"corpus %d" % number, proofs_only=alone)
        for at in range(BLOCKS):
            now = world.situation()
            for name, strategy in for_any_chain().items():
                if alone and not strategy.on_proof:
                    continue
                files = [] if alone else [name]
                if now.walked.cursor is not None and name in STOPPED:
                    files.append(f"stopped-{name}")
                for file in files:
                    known = made.setdefault(file, [])
                    found = None
                    if len(known) < ENOUGH:
                        found = _case(now, name, f"{number}/{at}")
                    if found is not None:
                        known.append(found)
            world.advance()
    return {
        file: min(found, key=lambda case: len(case.to_json()))
        for file, found in made.items()
        if found
    }


def main() -> None:
    """Write the corpus with `--write`, or only check that there is a case of every strategy."""
    made = cases()
    missing = set(for_any_chain()) - set(made)
    if missing:
        sys.exit(f"no case of {', '.join(sorted(missing))}")
    if sys.argv[1:] == ["--write"]:
        for old in FOLDER.glob("*.json"):
            old.unlink()
        for file, case in made.items():
            (FOLDER / f"{file}.json").write_text(case.to_json(), encoding="utf-8")


if __name__ == "__main__":
    main()

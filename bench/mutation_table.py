"""Print the results of the mutation runs in `mutants/` as the table of development/mutation.md.

    python3 bench/mutation_table.py

The table has a row per folder. mutmut keeps the result of each change beside the changed module, as
an exit code of pytest.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Final

FOLDER: Final = Path("mutants/pubsub_emulator")
COLUMNS: Final = ("noticed", "survived", "no test runs it", "not run")
_NOTICED: Final = frozenset([1, 3, 24, 36, 152, 255, -24, -9])
"""The exit codes of a failed test, and of a change that made its tests run without end."""


def outcome(code: int | None) -> str:
    """Return the column in which a change with this exit code is counted."""
    if code is None:
        return "not run"
    if code in _NOTICED:
        return "noticed"
    if code in {5, 33}:
        return "no test runs it"
    return "survived"


def outcomes(folder: Path) -> dict[str, Counter[str]]:
    """Return the number of mutants in each column of the table, by folder of the mutated module."""
    counts: dict[str, Counter[str]] = {}
    for path in sorted(folder.rglob("*.meta")):
        codes = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
        place = path.relative_to(folder).parent.as_posix()
        counts.setdefault(place, Counter()).update(map(outcome, codes.values()))
    return counts


def main() -> None:
    """Print the table."""
    print(f"| folder | changes | {' | '.join(COLUMNS)} |")
    print(f"|---|{'---|' * (len(COLUMNS) + 1)}")
    for room, counts in outcomes(FOLDER).items():
        figures = (counts.total(), *(counts[column] for column in COLUMNS))
        print(f"| `{room}` | {' | '.join(f'{figure:,}' for figure in figures)} |")


if __name__ == "__main__":
    main()

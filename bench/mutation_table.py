"""Print the results of the mutation runs in `mutants/` as the table of development/mutation.md.

    python3 bench/mutation_table.py

The table has a row for each pattern of `only_mutate` in pyproject.toml. mutmut keeps the result of
each change beside the changed module, as an exit code of pytest.
"""

import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Final

PROJECT: Final = Path("pyproject.toml")
MUTANTS: Final = Path("mutants")
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


def mutated_folders(project: Path) -> list[str]:
    """Return the folders whose modules are changed, as `only_mutate` lists them.

    mutmut's `*` matches slashes too, so the folders below them belong to them.
    """
    settings = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["mutmut"]
    return [pattern.removesuffix("/*.py") for pattern in settings["only_mutate"]]


def outcomes(mutants: Path, folders: list[str]) -> dict[str, Counter[str]]:
    """Return the number of changes in each column of the table, by folder.

    Folders for which mutmut has not made any changes yet are left out.
    """
    counts: dict[str, Counter[str]] = {}
    for folder in folders:
        for path in sorted((mutants / folder).rglob("*.meta")):
            codes = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
            counts.setdefault(folder, Counter()).update(map(outcome, codes.values()))
    return counts


def main() -> None:
    """Print the table."""
    print(f"| folder | changes | {' | '.join(COLUMNS)} |")
    print(f"|---|{'---|' * (len(COLUMNS) + 1)}")
    for folder, counts in outcomes(MUTANTS, mutated_folders(PROJECT)).items():
        figures = (counts.total(), *(counts[column] for column in COLUMNS))
        _, _, room = folder.partition("/")
        print(f"| `{room}` | {' | '.join(f'{figure:,}' for figure in figures)} |")


if __name__ == "__main__":
    main()

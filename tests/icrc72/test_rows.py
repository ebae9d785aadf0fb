"""Every acceptance row of both pages has a test that names it."""

import re
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
OF_REPLAYS = {HERE / "test_acceptance_77.py", HERE / "test_draft_replays.py"}


def _rows(files: Iterable[Path]) -> set[int]:
    found: set[int] = set()
    for path in files:
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            rows = re.match(r"test_rows?_((?:\d+_(?:and_)?)+)", name) or re.search(r"acceptance_(\d+)_", name)
            if rows is not None:
                found.update(int(each) for each in re.findall(r"\d+", rows[1]))
    return found


def test_every_row_is_named() -> None:
    assert _rows({*HERE.rglob("test_*.py")} - OF_REPLAYS) == set(range(1, 36))
    assert _rows([*OF_REPLAYS, HERE / "test_upgrades.py"]) == set(range(1, 25))

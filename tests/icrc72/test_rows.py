"""Every acceptance row of both pages has a test that names it."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _rows(*files: Path) -> set[int]:
    found: set[int] = set()
    for path in files:
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            rows = re.match(r"test_rows?_((?:\d+_(?:and_)?)+)", name) or re.search(r"acceptance_(\d+)_", name)
            if rows is not None:
                found.update(int(each) for each in re.findall(r"\d+", rows[1]))
    return found


@pytest.mark.parametrize(
    ("count", "files"),
    [
        (35, ("test_acceptance_72.py", "test_bridge.py", "test_upgrades.py", "ic/test_network.py")),
        (24, ("test_acceptance_77.py", "test_upgrades.py")),
    ],
    ids=["ICRC-72", "ICRC-77"],
)
def test_every_row_is_named(count: int, files: tuple[str, ...]) -> None:
    assert _rows(*(HERE / each for each in files)) == set(range(1, count + 1))

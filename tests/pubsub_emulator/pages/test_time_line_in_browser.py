"""The time line that the page of a run and the live page share: where its keys lead, and where it
draws squares.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page

from pubsub_emulator.pages.assets import asset, names, script

Place = dict[str, Any]
COLUMNS: dict[int, Mapping[str, int]] = {
    5: {"a5": 2000, "b5": 2001},
    6: {"a6-refused": 2000, "a6": 2000},
    7: {},
    # 8 is not known yet
    9: {"a9": 2000, "b9": 2001},
}
"""Squares with their rows, by relay block. Chain 2002 has no block."""


def leads(page: Page, key: str, here: Place) -> Place | None:
    """Return the place that a key leads to."""
    columns = {
        number: {"squares": [{"name": name, "row": row} for name, row in squares.items()]}
        for number, squares in COLUMNS.items()
    }
    found: str = page.evaluate(
        f"""(given) => {{ {script("block/moves.js")}
        const [key, here, columns] = given;
        const rows = [2000, 2002, 2001].map((id) => ({{ id }}));
        const line = {{ first: 5, last: 9, rows, columnAt: (number) => columns[number] }};
        return JSON.stringify(modules["block/moves.js"].moved(key, here, line)); }}""",
        [key, here, columns],
    )
    place: Place | None = json.loads(found)
    return place


@pytest.mark.parametrize(
    ("key", "here", "place"),
    [
        ("ArrowRight", {"number": 5, "name": "a5"}, {"number": 6, "name": "a6-refused"}),
        ("ArrowRight", {"number": 6, "name": "a6-refused"}, {"number": 6, "name": "a6"}),
        ("ArrowLeft", {"number": 6, "name": "a6"}, {"number": 6, "name": "a6-refused"}),
        ("ArrowLeft", {"number": 5, "name": "a5"}, None),
        ("ArrowRight", {"number": 9, "name": "a9"}, None),
        ("ArrowRight", {"number": 5}, {"number": 6}),
        ("ArrowLeft", {"number": 5}, None),
        ("ArrowDown", {"number": 6}, {"number": 6, "name": "a6"}),
        ("ArrowUp", {"number": 6, "name": "a6"}, {"number": 6}),
        ("ArrowUp", {"number": 6}, {"number": 6}),
        ("ArrowDown", {"number": 5, "name": "b5"}, None),
        ("Home", {"number": 9, "name": "b9"}, {"number": 5, "name": "b5"}),
        ("End", {"number": 6, "name": "a6"}, {"number": 9, "name": "a9"}),
        ("End", {"number": 6}, {"number": 9}),
    ],
)
def test_keys_lead_along_a_chain_and_across_chains(
    page: Page, key: str, here: Place, place: Place | None
) -> None:
    assert leads(page, key, here) == place


def test_a_chain_without_a_block_is_passed_over(page: Page) -> None:
    below = {"number": 5, "name": "b5"}
    assert leads(page, "ArrowDown", {"number": 6, "name": "a6"}) == below
    assert leads(page, "ArrowUp", below) == {"number": 5, "name": "a5"}


def test_a_column_that_is_not_known_is_not_passed_over(page: Page) -> None:
    """It may have a block of the chain, which is read once it is in sight."""
    assert leads(page, "ArrowRight", {"number": 6, "name": "a6"}) == {"number": 8}
    assert leads(page, "ArrowLeft", {"number": 9, "name": "b9"}) == {"number": 8}


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_several_squares_of_a_chain_share_the_height_of_one(page: Page, count: int) -> None:
    spots: Sequence[Mapping[str, float]] = page.evaluate(
        f"""(count) => {{ {script("block/grid.js")}
        const {{ placed }} = modules["block/grid.js"];
        return Array.from({{ length: count }}, (_, nth) => placed(2, nth, count)); }}""",
        count,
    )
    single: Mapping[str, float] = page.evaluate(
        f"""() => {{ {script("block/grid.js")}
        return modules["block/grid.js"].placed(2, 0, 1); }}"""
    )
    assert spots[0]["top"] == single["top"]
    bottom = single["top"] + single["height"]
    assert spots[-1]["top"] + spots[-1]["height"] == pytest.approx(bottom)
    for spot, below in pairwise(spots):
        assert spot["height"] > 0
        assert spot["top"] + spot["height"] < below["top"]


def test_there_is_one_time_line_for_all_pages() -> None:
    for user in ("run/timeline.js", "lab/timeline.js"):
        assert 'import { Timeline } from "../block/timeline.js";' in asset(user)
    files = [name for name in names("", "block", "run", "lab", "report") if name.endswith(".js")]
    assert [name for name in files if "Blocks along time" in _text(name)] == ["block/timeline.js"]


def _text(name: str) -> str:
    """Return a script without its comments."""
    lines = asset(name).splitlines()
    return "\n".join(line for line in lines if not line.startswith("//"))

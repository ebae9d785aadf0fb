"""Parts that code writes and pages have themselves, so that a checkout shows them."""

from pathlib import Path

import made
import pytest
from support.plumbing.pages import ROOT

PAGES = [
    path
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if "<!-- made: " in path.read_text(encoding="utf-8")
]
NAMES = {path.stem for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_each_part_is_what_the_code_writes(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert made.renewed(text) == text, "python docs/made.py --write PAGE writes it anew"


def test_a_part_that_is_out_of_date_is_found() -> None:
    text = "<!-- made: prism-cheats -->\nOUTDATED\n<!-- end -->\n"
    assert "OUTDATED" not in made.renewed(text)
    assert made.renewed(made.renewed(text)) == made.renewed(text)

"""The frame of all pages: readable colours, and a policy that allows one script."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

from pubsub_emulator.pages import palette
from pubsub_emulator.pages.assets import BASE, asset, joined, names
from pubsub_emulator.pages.document import document, head
from pubsub_emulator.pages.html import Html, cells, heads

FOLDER = Path(__file__).parents[3] / "pubsub_emulator"
TEXTS = ("ink", "muted", "accent", "good", "warn", "bad")
GROUNDS = ("ground", "paper", "hover")


def luminance(color: str) -> float:
    """The relative luminance of a colour, as WCAG 2 defines it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colors", [palette.DAY, palette.NIGHT], ids=["day", "night"])
@pytest.mark.parametrize("text", TEXTS)
def test_text_can_be_read_on_every_ground(colors: dict[str, str], text: str) -> None:
    for ground in GROUNDS:
        assert contrast(colors[text], colors[ground]) >= 4.5, ground
    assert contrast(colors["bad"], colors["bad-ground"]) >= 4.5


def test_each_colour_of_a_chart_is_one_variable() -> None:
    assert len(set(palette.DAY.values())) == len(palette.DAY)


def test_styles_use_no_colour_variable_that_is_not_there() -> None:
    files = [name for name in names("", "block", "run", "lab", "report") if name.endswith(".css")]
    text = joined((*BASE, *files))
    used = set(re.findall(r"var\(--([\w-]+)\)", text))
    made = set(re.findall(r"--([\w-]+):", text)) | set(palette.DAY)
    assert used <= made


def test_files_of_pages_are_short_in_lines_and_columns() -> None:
    templates = (FOLDER / "spark_audit" / "report" / "templates").iterdir()
    files = [path for path in (FOLDER / "pages" / "assets").rglob("*") if path.is_file()]
    for path in (*files, *templates):
        if path.parent.name != "vendor":
            lines = path.read_text(encoding="utf-8").splitlines()
            assert len(lines) <= 200, path
            assert max(map(len, lines)) <= 100, path


def test_the_policy_allows_the_one_script_and_nothing_from_elsewhere() -> None:
    code = "say(1)"
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    made = head("<a title>", "p{}", code)
    assert f"script-src 'sha256-{digest}'" in made
    assert "default-src 'none'" in made
    assert "<title>&lt;a title&gt;</title>" in made
    assert "script-src" not in document("plain", "")


def test_cells_of_tables_are_escaped_unless_they_are_markup() -> None:
    row = cells("tfl", "<b>", 1234, Html("<i>x</i>"))
    assert row == (
        '<tr><th scope="row">&lt;b&gt;</th><td class="figure">1,234</td>'
        '<td class="long"><i>x</i></td></tr>'
    )
    assert cells("tf", "a", None).endswith('<td class="figure"></td></tr>')
    with pytest.raises(ValueError, match="zip"):
        heads("tf", "one")


def test_the_style_of_colours_is_made_from_the_palette() -> None:
    assert asset("colours.css") == palette.variables()
    assert f"--ink:{palette.NIGHT['ink']}" in asset("colours.css")

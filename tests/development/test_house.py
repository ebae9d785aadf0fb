"""The drawing of the rooms is that of the sources, and shows what does not point down."""

from pathlib import Path

import pytest

from development import house
from development.environment import ROOT

PROJECT = """
[tool.importlinter]
[[tool.importlinter.contracts]]
type = "layers"
containers = ["pubsub_emulator"]
layers = ["high | beside", "middle", "low"]
"""


def test_the_picture_of_the_page_is_that_of_the_sources() -> None:
    assert house.PICTURE.read_text(encoding="utf-8") == house.drawing(house.house()), (
        "`python -m development.house` draws it again"
    )
    for page in ("docs/architecture.md", "docs/decisions/two-distributions.md"):
        assert "images/house.svg" in (ROOT / page).read_text(encoding="utf-8")


def test_no_import_points_up_and_the_border_is_crossed_in_one_direction() -> None:
    drawn = house.house()
    assert drawn.upward() == []
    crossing = {(room.package, other.package) for room, other in drawn.across()}
    assert crossing == {("interchain_events", "pubsub_emulator")}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with four rooms and a module beside them."""
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    package = tmp_path / "pubsub_emulator"
    texts = {
        "__init__.py": "from pubsub_emulator.low import things\n",
        "beside.py": "from pubsub_emulator.high import things\n",
        "high/__init__.py": "",
        "high/things.py": "import pubsub_emulator.low.things\nfrom ..middle import things\n",
        "middle/__init__.py": "def late():\n    from pubsub_emulator.low import things\n",
        "low/__init__.py": "import json\n",
    }
    for name, text in texts.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_imports_are_found_wherever_they_are_and_implied_ones_are_left_out(checkout: Path) -> None:
    drawn = house.house(checkout)
    high, middle, low = (house.Room("pubsub_emulator", name) for name in ("high", "middle", "low"))
    assert drawn.floors == [[high], [middle], [low]]
    assert drawn.imports == {high: {middle, low}, middle: {low}, low: set()}
    assert list(drawn.shown()) == [(high, middle), (middle, low)]
    assert 'marker-end="url(#up)"' not in house.drawing(drawn)


def test_an_import_that_points_up_is_red_and_is_named(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "pubsub_emulator/low/worse.py").write_text(
        "from pubsub_emulator.high import things\n", encoding="utf-8"
    )
    picture = checkout / "house.svg"
    assert house.main([str(checkout), str(picture)]) == 1
    assert "pubsub_emulator/low imports pubsub_emulator/high" in capsys.readouterr().err
    assert picture.read_text(encoding="utf-8").count('marker-end="url(#up)"') == 1


def test_a_room_without_a_floor_is_refused(checkout: Path) -> None:
    (checkout / "pubsub_emulator/attic").mkdir()
    (checkout / "pubsub_emulator/attic/box.py").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="pubsub_emulator/attic is in no contract of layers"):
        house.house(checkout)

"""docs/architecture.md: its rooms and modules exist."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOMS = sorted(
    path.name for path in (ROOT / "pubsub_emulator").iterdir() if path.is_dir() and path.name != "__pycache__"
)
DOTTED = sorted(set(re.findall(rf"(?<![\w./])(?:{'|'.join(ROOMS)})(?:\.(?!md\b)[a-z_]+)+\b(?!/)", TEXT)))
FOLDERS = sorted(set(re.findall(rf"`((?:{'|'.join(ROOMS)})/[\w/.]*)`", TEXT)))


@pytest.mark.parametrize("name", DOTTED)
def test_each_dotted_module_of_the_page_exists(name: str) -> None:
    assert find_spec(f"pubsub_emulator.{name}") is not None


@pytest.mark.parametrize("name", FOLDERS)
def test_each_folder_and_file_of_the_page_exists(name: str) -> None:
    assert (ROOT / "pubsub_emulator" / name).exists()


def test_the_page_names_modules_and_every_room() -> None:
    assert len(DOTTED) > 8
    assert {f"{room}/" for room in ROOMS} <= set(FOLDERS)

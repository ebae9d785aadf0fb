"""No public name disappears without having warned for one release (docs/stability.md)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support.plumbing.processes import ROOT

from pubsub_emulator.lazy import homes
from pubsub_emulator.moved import MOVED

KEPT: Path = Path(__file__).with_name("public_names.txt")
"""One name in a line: those of the last release and those added since."""


def offered() -> set[str]:
    """Return the names of all stubs of both distributions."""
    names = set()
    for distribution in ("pubsub_emulator", "interchain_events"):
        for stub in sorted((ROOT / distribution).rglob("__init__.pyi")):
            package = ".".join(stub.parent.relative_to(ROOT).parts)
            names |= {f"{package}.{name}" for name in homes(package)}
    return names


def kept() -> list[str]:
    return KEPT.read_text(encoding="utf-8").split()


def test_every_kept_name_is_still_offered() -> None:
    gone = set(kept()) - offered()
    assert not gone, "let them warn for one release first"


def test_every_offered_name_is_kept() -> None:
    assert not offered() - set(kept()), f"add them to {KEPT.name}"


def test_the_list_is_sorted_and_has_no_moved_path() -> None:
    assert kept() == sorted(set(kept()))
    assert not [name for name in kept() if name.startswith(tuple(f"{old}." for old in MOVED))]


def imported(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the modules that the files of a folder import by their full paths."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                for alias in node.names:
                    yield path, f"{node.module}.{alias.name}"
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    yield path, alias.name


def test_tests_of_the_emulator_use_nothing_of_the_event_systems() -> None:
    others = {"interchain_events"} | {
        f"support.{room}" for room in ("database", "distributor", "events", "icrc72", "prism")
    }
    for path, name in imported(ROOT / "tests" / "pubsub_emulator"):
        assert not [each for each in others if f"{name}.".startswith(f"{each}.")], path


def test_the_page_lists_all_modules_that_the_event_systems_use() -> None:
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith("| for other distributions"))
    listed = {
        f"pubsub_emulator.{name.removeprefix('pubsub_emulator.')}"
        for name in re.findall(r"`([\w.]+)`", row)
    } - {"pubsub_emulator.interchain_events"}
    used = set()
    for path, name in imported(ROOT / "interchain_events"):
        if name.startswith("pubsub_emulator."):
            homes_of = [each for each in listed if f"{name}.".startswith(f"{each}.")]
            assert homes_of, f"{path}: {name} is not on the page"
            used.update(homes_of)
    assert used == listed

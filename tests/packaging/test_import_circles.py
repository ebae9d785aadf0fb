"""No circle of files, of folders or of rooms; imports in functions and for types count."""

import ast
from functools import cache
from pathlib import Path

from pubsub_emulator.emulator.scenario.file import load_bundled

ROOT = Path(__file__).parents[2]
PACKAGE = "pubsub_emulator"
ROOMS = sorted(path.name for path in (ROOT / PACKAGE).iterdir() if path.is_dir() and path.name != "__pycache__")

Graph = dict[str, set[str]]


def modules(root: Path, rooms: list[str]) -> dict[str, Path]:
    out = {}
    for room in rooms:
        for path in sorted((root / room).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            out[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return out


def imported(tree: ast.Module, known: dict[str, Path]) -> set[str]:
    """The modules that a file imports anywhere, by their names below the package."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    below = {name.removeprefix(f"{PACKAGE}.") for name in names if name.startswith(f"{PACKAGE}.")}
    # `from room import module` asks for the module, and not for what else the room's `__init__` gives.
    found = below & known.keys()
    return {name for name in found if not any(other.startswith(f"{name}.") for other in found)}


def graph(root: Path, rooms: list[str]) -> Graph:
    known = modules(root, rooms)
    return {name: imported(ast.parse(path.read_text(encoding="utf-8")), known) - {name} for name, path in known.items()}


@cache
def project() -> Graph:
    return graph(ROOT / PACKAGE, ROOMS)


def circles(imports: Graph) -> list[list[str]]:
    """The groups of files that import each other, by removing files that import no other or that no other imports."""
    left = {name: set(others) for name, others in imports.items()}
    while True:
        wanted = set().union(*left.values()) if left else set()
        free = {name for name, others in left.items() if not others or name not in wanted}
        if not free:
            return [sorted(left)] if left else []
        left = {name: others - free for name, others in left.items() if name not in free}


def beside(imports: Graph, folder: str) -> Graph:
    """The files and folders of a folder, `""` for the rooms, with what each imports of the others."""
    depth = len(folder.split(".")) if folder else 0
    inside = {
        name: [*others] for name, others in imports.items() if f".{name}".startswith(f".{folder}." if folder else ".")
    }
    found: Graph = {}
    for name, others in inside.items():
        here = ".".join(name.split(".")[: depth + 1])
        there = {".".join(other.split(".")[: depth + 1]) for other in others if other in inside}
        found.setdefault(here, set()).update(there - {here})
    return found


def folders(imports: Graph) -> set[str]:
    return {"", *(name.rsplit(".", count)[0] for name in imports for count in range(1, name.count(".") + 1))}


def test_no_file_imports_another_that_imports_it_again() -> None:
    assert circles(project()) == []


def test_no_room_or_folder_imports_another_that_imports_it_again() -> None:
    assert [found for folder in sorted(folders(project())) for found in circles(beside(project(), folder))] == []


def test_rooms_have_floors_and_no_room_is_apart() -> None:
    rooms = beside(project(), "")
    assert set(rooms) == set(ROOMS)
    imported_by_none = {room for room in rooms if not any(room in others for others in rooms.values())}
    assert {room for room in rooms if not rooms[room]} == {"primitives", "serving"}
    assert imported_by_none <= {"cli", "testing"}


def test_the_graph_is_that_of_all_rooms() -> None:
    assert len(ROOMS) > 10
    assert load_bundled.__module__.removeprefix(f"{PACKAGE}.") in project()


def test_a_circle_of_folders_is_found_where_its_files_have_none() -> None:
    imports: Graph = {"a.x": {"b.x"}, "b.x": set(), "b.y": {"a.y"}, "a.y": set()}
    assert circles(imports) == []
    assert circles(beside(imports, "")) == [["a", "b"]]


def test_a_circle_is_found_wherever_its_imports_stand(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    (room / "__init__.py").write_text("from pubsub_emulator.room.a import A\n")
    (room / "a.py").write_text("from pubsub_emulator.room import b\n")
    (room / "b.py").write_text("def late():\n    from pubsub_emulator.room.c import C\n")
    (room / "c.py").write_text("import pubsub_emulator.room.a\n")
    (room / "d.py").write_text("from pubsub_emulator.room.a import A\n")
    assert circles(graph(tmp_path, ["room"])) == [["room.a", "room.b", "room.c"]]
    (room / "c.py").write_text("")
    assert circles(graph(tmp_path, ["room"])) == []

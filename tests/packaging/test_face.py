"""The names that packages offer: one list of each, which documents and examples use."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import interchain_events
import pubsub_emulator
from pubsub_emulator.lazy import homes

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [Path(package.__file__).parent for package in (pubsub_emulator, interchain_events)]
ROOMS = {path.name for package in PACKAGES for path in package.iterdir() if path.is_dir()}
STUBS = [stub for package in PACKAGES for stub in sorted(package.glob("*/__init__.pyi"))]
FACES = [
    "pubsub_emulator",
    *(f"{stub.parents[1].name}.{stub.parent.name}" for stub in STUBS),
]
PUBLIC = {
    *FACES,
    "pubsub_emulator.primitives.scale",
    "pubsub_emulator.runtime.framework.system",
    "pubsub_emulator.spark_audit",
    "pubsub_emulator.spark_audit.history.schema",
    "pubsub_emulator.testing.strategies",
}
"""What users import from: packages that list names, and modules that are used whole."""


@pytest.mark.parametrize("package", FACES)
def test_every_name_of_a_face_is_that_of_its_module(package: str) -> None:
    offering = import_module(package)
    names = homes(package)
    assert names
    for public, (module, name) in names.items():
        assert getattr(offering, public) is getattr(import_module(module), name)
    assert set(offering.__all__) == set(names)
    assert set(names) < set(dir(offering))
    stub = ast.parse(Path(str(offering.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    imported = [each for each in stub.body if isinstance(each, ast.ImportFrom)]
    assert set(names) == {alias.asname for each in imported for alias in each.names}


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'pubsub_emulator' has no attribute 'Nothing'"):
        _ = pubsub_emulator.Nothing  # type: ignore[attr-defined]


def imported_by_users() -> list[tuple[str, str]]:
    """Each module that a page or an example imports names from, with the place."""
    found = []
    for folder in ("docs", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".md", ".ipynb"} and not {"_build", "api"} & set(path.parts):
                text = path.read_text(encoding="utf-8")
                for module, names in re.findall(
                    r"from ((?:pubsub_emulator|interchain_events)[\w.]*) import ([\w, ]+)", text
                ):
                    place = path.relative_to(ROOT).as_posix()
                    whole = [f"{module}.{name.strip()}" for name in names.split(",")]
                    found += [(place, each if each in PUBLIC else module) for each in whole]
    return found


def test_documents_and_examples_import_from_faces() -> None:
    site = re.compile(r"docs/\w+\.py")  # what writes the site reads registries of all rooms
    assert not [
        each
        for each in imported_by_users()
        if each[1] not in PUBLIC and not site.fullmatch(each[0])
    ]
    assert len(imported_by_users()) > 40


def test_importing_the_package_or_a_low_room_loads_nothing_above_it() -> None:
    loaded = "{name.split('.')[1] for name in sys.modules if name.startswith('pubsub_emulator.')}"
    code = f"import sys, pubsub_emulator.trie; print(*sorted({loaded}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["lazy", "moved", "primitives", "trie", "version"]


def test_importing_the_emulator_loads_nothing_of_the_event_systems() -> None:
    code = "import sys, pubsub_emulator.emulator.network; print('interchain_events' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_no_room_is_imported_by_its_bare_name() -> None:
    assert not [room for room in ROOMS if room in sys.modules]

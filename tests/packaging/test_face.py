"""The package's own page: the names that `pubsub_emulator` offers, and that the rooms go by that name only."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import pubsub_emulator

ROOMS = tuple(path.name for path in Path(pubsub_emulator.__file__).parent.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", pubsub_emulator.__all__)
def test_every_name_of_the_face_is_that_of_its_room(name: str) -> None:
    home = pubsub_emulator._HOME_OF.get(name)
    value = getattr(pubsub_emulator, name)
    assert home is None or value is getattr(import_module(f"pubsub_emulator.{home}"), name)


def test_the_face_lists_what_its_rooms_give() -> None:
    assert set(pubsub_emulator.__all__) == {"__version__", *pubsub_emulator._HOME_OF}
    assert set(pubsub_emulator.__all__) <= set(dir(pubsub_emulator))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'pubsub_emulator' has no attribute 'Nothing'"):
        _ = pubsub_emulator.Nothing  # type: ignore[attr-defined]


def test_importing_the_package_or_a_low_room_loads_nothing_above_it() -> None:
    loaded = "{name.split('.')[1] for name in sys.modules if name.startswith('pubsub_emulator.')}"
    code = f"import sys, pubsub_emulator.trie; print(*sorted({loaded}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["primitives", "trie"]


def test_no_room_is_imported_by_its_bare_name() -> None:
    assert not [room for room in ROOMS if room in sys.modules]

"""Files and folders that appear whole, with the mode that any other new one would have."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from stat import S_IMODE

import pytest

from pubsub_emulator.files.atomic import whole_file, write_whole
from pubsub_emulator.files.output import new_folder
from pubsub_emulator.spark_audit.history.storage import open_store


def _folder(path: Path) -> None:
    with new_folder(path) as made:
        (made / "x").write_text("x")


WRITERS: dict[str, Callable[[Path], object]] = {
    "write_whole": lambda path: write_whole(path, "x"),
    "new_folder": _folder,
    "put": lambda path: open_store(path.parent).put(path.name, b"x"),
    "put_new": lambda path: open_store(path.parent).put_new(path.name, b"x"),
}


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("name", WRITERS)
def test_the_umask_decides_the_mode(tmp_path: Path, umask: int, name: str) -> None:
    path = tmp_path / "made"
    WRITERS[name](path)
    assert S_IMODE(path.stat().st_mode) == (0o777 if path.is_dir() else 0o666) & ~umask
    assert [each.name for each in tmp_path.iterdir()] == ["made"]


def test_an_error_leaves_the_older_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "made"
    write_whole(path, "old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as file:
        file.write(str(1 // 0))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("made", "old")]

"""A file that is no module is refused by its name."""

from pathlib import Path

import pytest

from pubsub_emulator.cli.commands.icrc72.modules import read_module
from pubsub_emulator.icrc72.errors import Icrc72Error


def test_what_is_no_module_is_refused_by_its_name(tmp_path: Path) -> None:
    place = tmp_path / "no.wasm"
    with pytest.raises(Icrc72Error, match=r"no\.wasm: cannot be read"):
        read_module(place)
    place.write_bytes(b"hi\n")
    with pytest.raises(Icrc72Error, match=r"no\.wasm: not a WebAssembly module"):
        read_module(place)
    place.write_bytes(b"\0asm\1\0\0\0")
    assert read_module(place) == b"\0asm\1\0\0\0"

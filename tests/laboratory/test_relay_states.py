"""Whole relay states as files: what is in them leads to the root that the header commits to."""

import json
from pathlib import Path

import pytest

from pubsub_emulator.laboratory.relay_states import FOLDER, KEPT, relay_states, write_relay_states
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.trie import state_root
from pubsub_emulator.trie.bulk import ordered_root


def raw(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("set")
    write_relay_states(relay_states("fixtures"), folder)
    return folder / FOLDER


def test_entries_and_child_tries_give_the_state_root_and_the_body_its_root(written: Path) -> None:
    files = sorted(written.iterdir())
    assert len(files) == KEPT
    for path in files:
        state = json.loads(path.read_text())["relay_state"]
        header = Header.decode(raw(state["header"]))
        entries = [(raw(key), raw(value)) for key, value in state["entries"]]
        for child in state["children"]:
            root = state_root([(raw(key), raw(value)) for key, value in child["entries"]])
            entries.append((CHILD_STORAGE_PREFIX + raw(child["storage_key"]), root))
        assert state_root(entries) == header.state_root
        assert ordered_root(map(raw, state["extrinsics"])) == header.extrinsics_root
        assert (header.hash(), header.number) == (raw(state["hash"]), state["number"])

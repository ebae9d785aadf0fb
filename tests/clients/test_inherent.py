"""UP-7: our inherent, read by @polkadot/api and polkadot-api from our metadata, without a node.

subxt reads the inherents of whole blocks in its scenario `blocks` (tests/clients/test_clients.py),
and Cumulus' own types in interop/inherent.py.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pubsub_emulator.emulator.scenario.file import load_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.at import METADATA_VERSIONS, At, metadata
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.abridged import ordered
from pubsub_emulator.runtime.parachain.block import Inherent

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import install  # noqa: E402  # of this folder

SHOP = ParaId(3000)
BARE_EXTRINSIC = 5
"""The version of extrinsics without a signature."""
SCENARIO = HERE.parents[1] / "examples" / "two_limits.toml"
NAMES = {
    "pjs": "parachainSystem.setValidationData",
    "papi": "ParachainSystem.set_validation_data",
}
pytestmark = [pytest.mark.clients, pytest.mark.timeout(660)]


@pytest.fixture(scope="module")
def network() -> tuple[At, list[Inherent]]:
    """A parachain with messages of both kinds, in full and hashed, and its inherents."""
    scenario = load_scenario(SCENARIO)
    [shop] = scenario.subscribers
    [load] = shop.load
    load = load.model_copy(update={"downward_size": 16_000, "horizontal_size": 20_000})
    # A chain with accounts needs room for signed extrinsics.
    shop = shop.model_copy(update={"max_pov_size": 1_312_000, "load": (load,)})
    simulation = Simulation(scenario.model_copy(update={"subscribers": (shop,)}), accounts=True)
    inherents = []
    for _ in range(6):
        records = simulation.step().records
        inherents += [each.candidate.inherent for each in records if each.chain == SHOP]
    chain = simulation.network.parachain(SHOP)
    return At(None, chain.header, chain.state, chain.header.hash()), inherents


def _by_sent(rows: Iterable[tuple[ParaId, Any]]) -> list[tuple[ParaId, Any]]:
    return sorted(rows, key=lambda row: (row[1].sent_at, row[0]))


def shown(inherent: Inherent) -> dict[str, Any]:
    """The fields as the script names them."""
    messages = inherent.messages
    hashed = []
    for sender, sent in messages.hashed_horizontal:
        hashed += [(sender, each) for each in sent]
    across = ordered(messages)
    return {
        "parentHead": hexed(inherent.parent_head),
        "relayParent": inherent.relay_parent_number,
        "root": hexed(inherent.relay_parent_storage_root),
        "maxPovSize": inherent.max_pov_size,
        "nodes": sorted(map(hexed, inherent.proof)),
        "descendants": len(inherent.descendants),
        "peer": None,
        "downward": [[each.sent_at, hexed(each.msg)] for each in messages.downward],
        "downwardHashed": [
            [each.sent_at, hexed(each.msg_hash)] for each in messages.hashed_downward
        ],
        "horizontal": [[sender, each.sent_at, hexed(each.data)] for sender, each in across],
        "horizontalHashed": [
            [sender, each.sent_at, hexed(each.msg_hash)] for sender, each in _by_sent(hashed)
        ],
    }


def call_of(inherent: Inherent) -> bytes:
    """The call, which in a bare extrinsic comes after the length and the version."""
    reader = Reader(inherent.extrinsic())
    body = reader.take(reader.length())
    assert body[0] == BARE_EXTRINSIC
    return body[1:]


@pytest.mark.parametrize("version", METADATA_VERSIONS)
def test_libraries_read_every_field_of_an_inherent_and_write_its_bytes_again(
    network: tuple[At, list[Inherent]], version: int, tmp_path: Path
) -> None:
    at, inherents = network
    assert any(each.messages.hashed_downward for each in inherents)
    assert any(each.messages.hashed_horizontal for each in inherents)
    calls = [hexed(call_of(each)) for each in inherents]
    (tmp_path / "metadata").write_text(hexed(metadata(at, version)), encoding="utf-8")
    (tmp_path / "calls").write_text("\n".join(calls), encoding="utf-8")
    install.install()
    place = install.folder("js")
    shutil.copy(HERE / "js" / "inherent.mjs", place)
    done = subprocess.run(
        [install.NODE, "inherent.mjs", tmp_path / "metadata", tmp_path / "calls"],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 2 * len(calls)
    for at_row, row in enumerate(rows):
        inherent = inherents[at_row % len(calls)]
        library = row.pop("library")
        assert row.pop("call") == NAMES[library]
        assert row.pop("again") == calls[at_row % len(calls)], library
        assert row == shown(inherent), library

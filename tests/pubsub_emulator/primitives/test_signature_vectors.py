"""Kept seals and signatures in the schemes of Substrate chains: what holds, and that one byte more
or less matters.
"""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from pubsub_emulator.emulator.fixtures import read_fixture, replay_fixture
from pubsub_emulator.laboratory.vectors import check_document
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.signature_vectors import FORMATS
from pubsub_emulator.runtime.parachain.block import Candidate

FOLDER = Path(__file__).resolve().parents[2] / "vectors" / "signatures"
VECTORS: dict[str, Any] = json.loads((FOLDER / "signatures.json").read_text(encoding="utf-8"))
HOLDING = [
    (kind, case) for kind in ("seals", "signatures") for case in VECTORS[kind] if case["holds"]
]


def failures(document: dict[str, Any]) -> int:
    return len(check_document(FOLDER, document, FORMATS[0]).failed)


@pytest.mark.parametrize(("kind", "case"), HOLDING, ids=[case["name"] for _, case in HOLDING])
def test_a_flipped_byte_of_what_holds_is_a_difference(kind: str, case: dict[str, Any]) -> None:
    changed = deepcopy(case)
    field = "header" if kind == "seals" else "signature"
    data = bytearray(unhex(changed[field]))
    data[-40] ^= 1
    changed[field] = "0x" + data.hex()
    assert failures({"seals": [], "signatures": [], kind: [case]}) == 0
    assert failures({"seals": [], "signatures": [], kind: [changed]}) == 1


def test_a_block_with_extrinsics_signed_by_each_scheme_is_valid() -> None:
    fixture = read_fixture(FOLDER / "signed-block.json")
    candidate = Candidate.decode(unhex(fixture.candidate))
    assert [raw[36] for raw in candidate.extrinsics] == [
        0,
        1,
        2,
        1,
    ]  # the tag after 2 + 1 + 33 bytes
    assert replay_fixture(fixture) == []
    for at, raw in enumerate(candidate.extrinsics):
        data = bytearray(unhex(fixture.candidate))
        place = bytes(data).index(raw) + 60
        data[place] ^= 1
        changed = fixture.model_copy(update={"candidate": "0x" + data.hex()})
        assert replay_fixture(changed), at

"""A node of the bundled scenario that answers `state_getMetadata` from vectors."""

from pathlib import Path
from typing import Any

import pytest

from pubsub_emulator.node.chain.block import RELAY
from pubsub_emulator.node.rpc.node import Runtimes

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "metadata"


def metadata_of(name: str) -> bytes:
    """The recorded metadata `relay_v14` or `parachain_v14`."""
    return (VECTORS / f"{name}.scale").read_bytes()


@pytest.fixture
def recorded_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every node of this test has metadata."""

    def answer(_self: Runtimes, block: Any, _version: int) -> bytes:
        return metadata_of("relay_v14" if block.chain is RELAY else "parachain_v14")

    monkeypatch.setattr(Runtimes, "metadata", answer)

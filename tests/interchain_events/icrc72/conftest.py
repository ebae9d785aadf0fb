"""The system on which most stories of this room are played."""

import pytest
from support.icrc72.canister_apps import Lab
from support.icrc72.carried import compare_carried


@pytest.fixture
def lab() -> Lab:
    """Two subnets with an orchestrator and a broadcaster on each."""
    return Lab()


@pytest.fixture(autouse=True)
def carried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Values that messages carry are those that their bytes have, in every test of this room."""
    return compare_carried(monkeypatch)

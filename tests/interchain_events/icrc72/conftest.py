"""The system on which most stories of this room are played."""

import pytest
from support.canister_apps import Lab


@pytest.fixture
def lab() -> Lab:
    """Two subnets with an orchestrator and a broadcaster on each."""
    return Lab()

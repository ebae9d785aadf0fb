"""The pytest plugin: the fixture `pubsub_canisters`.

Importing this module does not import the canisters, so that test runs that do not use them stay
fast.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from interchain_events.testing.canisters import Canisters


@pytest.fixture
def pubsub_canisters() -> "type[Canisters]":
    """Return a class of subnets with publish-subscribe.

    `pubsub_canisters(subnets=2, broadcasters=(0, 1))` creates one.
    """
    from interchain_events.testing.canisters import Canisters

    return Canisters

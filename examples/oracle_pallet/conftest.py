"""The start of every test: a market in which each feed has quoted."""

import pytest
from market import FEEDS, Market, market

from pubsub_emulator import Frozen, Network, Networks


@pytest.fixture(scope="session")
def pubsub_base(pubsub_networks: Networks) -> Frozen[Network]:
    """Built once for all tests."""
    opened = Market(pubsub_networks.build(market()).fork())
    for feed, price in zip(FEEDS, (7.0, 7.2, 7.1), strict=True):
        opened.quote(feed, price)
    opened.network.step(3)
    return pubsub_networks.freeze(opened.network, "market")


@pytest.fixture
def opened(pubsub_network: Network) -> Market:
    """The market, this test's own."""
    return Market(pubsub_network)

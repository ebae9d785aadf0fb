"""A market for the tests: three feeds, and a parachain that runs the oracle."""

import oracle

from pubsub_emulator import (
    Network,
    NetworkConfig,
    Pace,
    ParachainConfig,
    ParaId,
    PubsubConfig,
    RelayConfig,
    RuntimeSpec,
    Storage,
    key_from_data,
)

FEEDS = (1000, 1001, 1002)
CHAIN = 3000
PAIR = key_from_data(b"DOT/USD")


def market(every: int = 1, scans: int = 500) -> NetworkConfig:
    """Return a network of three feeds, which are system parachains, and the oracle.

    The oracle builds in one of `every` relay blocks. In each of its blocks the relay chain checks
    whether `scans` entries have expired.
    """
    wanted = {ParaId(feed): (PAIR,) for feed in FEEDS}
    chain = ParachainConfig(
        RuntimeSpec(ParaId(CHAIN), wanted, handler=oracle.HANDLER), pace=Pace(every=every)
    )
    feeds = (ParachainConfig.publisher(RuntimeSpec(ParaId(feed), {})) for feed in FEEDS)
    relay = RelayConfig(pubsub=PubsubConfig(max_ttl_scans_per_idle=scans))
    return NetworkConfig((chain, *feeds), relay)


def quote(price: float) -> bytes:
    """A price as feeds publish it."""
    return round(price * 1_000_000).to_bytes(oracle.QUOTE_BYTES, "little")


class Market:
    """A network with the actions of these tests."""

    def __init__(self, network: Network) -> None:
        """Of a network as `market` configures it."""
        self.network = network

    def quote(self, feed: int, price: float, ttl: int = 0) -> None:
        """A feed publishes a price."""
        self.network.publish(feed, PAIR, quote(price), ttl)

    def price(self) -> float | None:
        """The price of the oracle."""
        found = oracle.price(Storage(self.network.parachain(CHAIN).state), PAIR)
        return None if found is None else found / 1_000_000

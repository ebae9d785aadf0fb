"""Small networks whose events are logged."""

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.primitives.pubsub import key_from_data

PRICE = key_from_data(b"DOT/USD")
OTHER = key_from_data(b"KSM/USD")


def busy_network(seed: str = "events") -> Network:
    """Return a network of two publishers and one subscriber."""
    return Network.of(
        publishers=[1000, 3000], subscribers={2000: {1000: [PRICE], 3000: [OTHER]}}, seed=seed
    )


def run_busy(network: Network, steps: int = 12) -> None:
    """Publish, expire and delete; refused and failed calls too."""
    for at in range(steps):
        if at % 2 == 0:
            network.publish(1000, PRICE, f"price {at}".encode(), ttl=3)
        if at % 3 == 0:
            network.publish(3000, OTHER, b"x" * (at + 1))
        if at == 7:
            network.delete(3000, [OTHER])
        network.step()

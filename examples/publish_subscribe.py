"""A parachain publishes a price, another one is told: the whole path in a few lines."""

from pubsub_emulator import Network, key_from_data

price = key_from_data(b"DOT/USD")
network = Network.of(publishers=[1000], subscribers={2000: {1000: [price]}})
network.publish(1000, price, b"7.42", ttl=100)
for step in network.step(4):
    for delivery in step.deliveries(2000):
        print(f"relay block {step.number}: {delivery.value!r}, {delivery.ttl_state}")

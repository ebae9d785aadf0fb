"""The relay chain's pallets, except `Broadcaster`, which is `runtime.pallet_pubsub`."""

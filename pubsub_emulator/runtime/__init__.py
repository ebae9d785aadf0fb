"""The logic of the chains: storage, calls, blocks, and the pallets of relay chain and parachains."""

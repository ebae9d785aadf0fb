"""The chains' own logic: storage, calls, blocks, and the pallets of relay chain and parachains."""

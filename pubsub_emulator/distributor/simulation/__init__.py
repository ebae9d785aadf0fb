"""The distributor in virtual time, over emulated networks, subscribers and faults; the same seed, the same story."""

"""The Interchain Event Distributor: each event of one network published to all others, once."""

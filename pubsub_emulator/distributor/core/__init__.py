"""The distributor as a state machine: an input and a state in, a state and effects out; no I/O, no clock."""

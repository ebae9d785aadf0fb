"""The distributor as a state machine, without I/O and without a clock.

`step` takes one input (`messages.Input`) and the stored state, writes the new state and returns
effects (`messages.Effect`). The service and the simulation carry the effects out and return their
results as further inputs. Because everything here is a pure function of a transaction, a story can
be replayed from a seed (ID-51).
"""

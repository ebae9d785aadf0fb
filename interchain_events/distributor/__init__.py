"""The Interchain Event Distributor, which publishes each event of one network on all others, once.

`core` is the state machine, `once` the stores, `service` the process with its HTTP interface,
`adapter` the adapters of single networks, and `simulation` plays all of them in virtual time.
"""

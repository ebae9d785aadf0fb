"""The distributor in virtual time, over emulated networks and subscribers with faults (ID-51).

Everything that happens is derived from a seed, so a failure can be repeated. `stories` are random,
`scenarios` are the cases of the rules, and `script` plays scenario files (`file`). `invariants` has
the invariants that must hold at the end.
"""

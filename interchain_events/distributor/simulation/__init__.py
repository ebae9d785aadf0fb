"""The distributor in virtual time, over emulated networks and subscribers with faults (ID-51).

Everything that happens follows from a seed, so a failure can be repeated. `stories` are random,
`scenarios` are the cases of the rules, and `script` plays scenario files (`file`). The invariants
that must hold at the end of each are in `invariants`.
"""

"""Testing pallets and parachains against the emulator: a pytest plugin, hypothesis strategies, proof snapshots.

plugin.py          what pytest loads by itself: fixtures, the marker `pubsub_scenario`, options; imports nothing of ours
networks.py        networks built once and forked for each test
actors.py          collators and cheats at the network that a test has before it
failure.py         what a failing test is shown: the last blocks' ledgers, and what they changed
strategies.py      hypothesis strategies: keys, values, lifetimes, histories, networks, cheats
proof_sizes.py     what the proofs of a run weigh, and the files in which teams keep that
snapshot.py        the fixture `proof_snapshot`

`docs/testing.md` shows how it is used.
"""

"""Tools to test pallets and parachains with the emulator.

plugin.py          the plugin that pytest loads: fixtures, the marker `pubsub_scenario`, options
networks.py        networks built once and forked for each test
actors.py          collators and cheats of a test's network
failure.py         the report of a failing test: the last blocks' ledgers and changes of state
strategies.py      hypothesis strategies: keys, values, lifetimes, histories, networks, cheats
histories.py       actions on a network as data
setups.py          small networks as data
proof_sizes.py     sizes of a run's proofs, and their files; the fixture `proof_snapshot`

`docs/testing.md` shows how to use them.
"""

from pubsub_emulator.lazy import face

__getattr__, __dir__ = face(__name__)

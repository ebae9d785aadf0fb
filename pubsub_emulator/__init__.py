"""The pub-sub emulator: what most programs need, from one import.

    from pubsub_emulator import Network, key_from_data

The rooms are subpackages (`pubsub_emulator.trie`, `pubsub_emulator.runtime.pallet_pubsub`, …). The
names of the package itself are listed in `__init__.pyi`. Each is imported from its room when it is
first used, so a program pays only for the rooms it needs. `client`, `events`, `prism`, `icrc72` and
`testing` offer names of their own in the same way.
"""

from pubsub_emulator import moved
from pubsub_emulator.lazy import face
from pubsub_emulator.version import VERSION

__version__ = VERSION
moved.install()
__getattr__, __dir__ = face(__name__)

"""Four systems that bring events from one chain to others, on top of the pub-sub emulator.

events       ordered logs of chains, and filtered, resumable subscriptions to them
prism        identities in the events of a chain: a PRISM node and its clients
distributor  the Interchain Event Distributor: each event once on every other network
icrc72       publish, subscribe and replay between canisters (ICRC-72, ICRC-77)

They use the public modules of `pubsub_emulator` only.
"""

from pubsub_emulator.version import VERSION

__version__ = VERSION

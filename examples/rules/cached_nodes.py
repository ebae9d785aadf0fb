"""What do cached nodes, instead of hashes, cost the parachain's state, and save in proofs?"""

from dataclasses import replace

from pubsub_emulator import CachePolicy, rule


@rule
def runtime(spec):
    return replace(spec, cache=CachePolicy.NODES)

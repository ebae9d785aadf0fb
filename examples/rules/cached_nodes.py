"""What does caching nodes instead of hashes cost the parachain's own state, and what does it save
in proofs?
"""

from dataclasses import replace

from pubsub_emulator import CachePolicy, rule


@rule
def runtime(spec):
    return replace(spec, cache=CachePolicy.NODES)

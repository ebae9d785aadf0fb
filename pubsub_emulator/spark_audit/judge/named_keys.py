"""Names and publishers of the subscribed keys that a finding's detail contains in hex."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.spark_audit.judge.evidence import partial_state, read_block_evidence

MOST_NUMBERS: Final = 1_024
"""How many numbers are tried for each publisher to find a key's name. A scenario's key is the hash
of a name such as `1000/3`, with the publisher's ParaId and a number."""

MOST_PUBLISHERS: Final = 16
"""How many of a key's publishers are tried."""
_KEY: Final = re.compile(r"\bkey ([0-9a-f]{64})\b")


class NamedKey(NamedTuple):
    """A key that a subscriber has subscribed to."""

    key: PubsubKey
    publishers: tuple[ParaId, ...]
    """The publishers from which the subscriber wants it."""
    name: str
    """Its name in scenarios, such as `1000/3`, or an empty string if it is not a scenario's key."""


def named_keys(evidence: bytes, detail: str) -> Iterator[NamedKey]:
    """Yield each subscribed key that a finding's detail contains.

    The subscriptions are read from the nodes of the parent's state in `evidence`, which must have
    been judged before. Only evidence about a block has them; for other evidence, yield nothing.
    """
    keys = dict.fromkeys(PubsubKey(bytes.fromhex(digits)) for digits in _KEY.findall(detail))
    block = read_block_evidence(evidence) if keys else None
    if block is None:
        return
    nodes = {bytes(blake2_256(node)): node for node in block.nodes}
    spec = runtime_spec(partial_state(block.parent.state_root, nodes.get).top)
    for key in keys:
        publishers = tuple(para for para, wanted in spec.subscriptions.items() if key in wanted)
        if publishers:
            yield NamedKey(key, publishers, _scenario_name(key, publishers))


def _scenario_name(key: PubsubKey, publishers: tuple[ParaId, ...]) -> str:
    """Return the scenario's name that hashes to this key, or an empty string if there is none."""
    for para in publishers[:MOST_PUBLISHERS]:
        for number in range(MOST_NUMBERS):
            name = f"{para}/{number}"
            if key == key_from_data(name.encode()):
                return name
    return ""

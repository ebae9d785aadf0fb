"""The genesis of a parachain."""

from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.accounts.endowed import endow
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework.codecs import para_id
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import (
    ImpossibleConfig,
    RuntimeSpec,
    rules_for,
)
from pubsub_emulator.runtime.parachain.block import ChainHead
from pubsub_emulator.runtime.parachain.governance import check_runtime
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES, PARACHAIN_ID
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.trie import ordered_root


def genesis(
    spec: RuntimeSpec,
    authorities: tuple[bytes, ...],
    base: State | None = None,
    rules: Rules = SHIPPED,
) -> ChainHead:
    """Return block 0. If there is a state `base`, block 0 is written into it.

    Raises `ImpossibleConfig` if the runtime cannot work, or names neither `rules` nor the shipped
    rules.
    """
    rules_for(spec, rules)
    check_runtime(spec)
    if not authorities:
        raise ImpossibleConfig("a parachain needs at least one collator")
    state = State() if base is None else base
    own = {
        CODE: spec.encode(),
        AUTHORITIES.key: AUTHORITIES.codec.encode(authorities),
        PARACHAIN_ID.key: para_id.encode(spec.para_id),
    }
    state.apply(own, {})
    if spec.accounts:
        storage = Storage(state)
        endow(storage, Balances())
        storage.commit()
    return ChainHead(Header(Hash(bytes(32)), 0, state.root(), ordered_root(())), state, rules)

"""The relay headers of an inherent: the relay parent and its descendants (UP-12).

A runtime with a relay parent offset of n requires blocks on relay parents that have n descendants.
So short forks of the relay chain do not invalidate parachain blocks. An author shows the headers
from the relay parent to its n-th descendant:

    number     There are n + 1 headers.
    first      It has the state root of the relay parent, which the relay chain attests.
    each       Its parent is the header before it. It claims an authority of its epoch, and has the
               seal of that authority.
    epoch      A header after the first that announces an epoch already belongs to that epoch. The
               first belongs to the epoch whose authorities are in its own state.

The relay state proves the authorities of the relay parent's epoch, and if the headers announce an
epoch, also those of the next one. The facts are from polkadot-sdk:
`cumulus/pallets/parachain-system/src/descendant_validation.rs`.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice

from pubsub_emulator.primitives import babe, schnorrkel
from pubsub_emulator.primitives.babe import Authority
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.storage_keys import AUTHORITIES, NEXT_AUTHORITIES
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.static_keys import StaticValues
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec


def announces_epoch(headers: Iterable[Header]) -> bool:
    """Return whether a header after the first announces an epoch."""
    later = islice(headers, 1, None)
    return any(babe.announced_epoch(header) is not None for header in later)


def authority_keys(spec: RuntimeSpec, headers: Sequence[Header]) -> tuple[bytes, ...]:
    """Return the additional static keys that a block with these relay headers proves (UP-4).

    A runtime without an offset has none, even if the author shows headers.
    """
    if not spec.relay_parent_offset:
        return ()
    if announces_epoch(headers):
        return (AUTHORITIES, NEXT_AUTHORITIES)
    return (AUTHORITIES,)


def count_fault(spec: RuntimeSpec, headers: Sequence[Header]) -> str | None:
    """Return a fault if the number of relay headers does not match the offset, or else `None`."""
    offset = spec.relay_parent_offset
    wanted = offset + 1 if offset else 0
    if len(headers) == wanted:
        return None
    if not offset:
        return f"{len(headers)} relay headers, this chain builds on the newest block"
    return f"{len(headers)} relay headers, an offset of {offset} wants {wanted}"


def descendant_fault(
    headers: Sequence[Header], relay_root: Hash, statics: StaticValues
) -> str | None:
    """Return the first reason why relay headers are not a sealed chain on the relay parent.

    Returns `None` if they are. There must be at least one. `relay_root` is the attested storage
    root of the relay parent, and `statics` has the values of `authority_keys`.
    """
    if headers[0].state_root != relay_root:
        return (
            f"the first relay header has state root {headers[0].state_root.hex()}, the relay"
            f" parent's is {relay_root.hex()}"
        )
    authorities = _authorities(statics.values.get(AUTHORITIES))
    if not authorities:
        return "the relay parent's state has no authorities"
    following = _authorities(statics.values.get(NEXT_AUTHORITIES))
    parent: Hash | None = None
    for index, header in enumerate(headers):
        if parent is not None and header.parent_hash != parent:
            return f"relay header {header.number} does not follow the one before it"
        parent = header.hash()
        announced = babe.announced_epoch(header)
        if announced is not None and index:
            if not following:
                return f"relay header {header.number} begins an epoch of unknown authorities"
            authorities = following
            following = announced.authorities
        fault = _seal_fault(header, authorities)
        if fault is not None:
            return f"relay header {header.number} {fault}"
    return None


def _authorities(value: bytes | None) -> tuple[Authority, ...]:
    """Return the authorities in a storage value.

    There are none if the value is absent or has other bytes. This is not an error, because the
    relay root commits to the value, so the author of the block is not at fault.
    """
    try:
        return () if value is None else tuple(babe.authorities.decode(value))
    except ScaleError:
        return ()


def _seal_fault(header: Header, authorities: Sequence[Authority]) -> str | None:
    """Return a fault if a header does not have the seal of the authority that it claims.

    Returns `None` if it has.
    """
    index = babe.claimed_authority(header)
    if index is None:
        return "claims no authority"
    if index >= len(authorities):
        return f"claims authority {index} of {len(authorities)}"
    key, _ = authorities[index]
    return None if _is_sealed(header, key) else f"has no seal of authority {index}"


@lru_cache(maxsize=1 << 12)
def _is_sealed(header: Header, key: bytes) -> bool:
    """Return whether a header ends with the seal of a key.

    The last results are cached, because many blocks show the same header.
    """
    parts = babe.sealed_by(header)
    if parts is None:
        return False
    bare, signature = parts
    return schnorrkel.verify(key, bare.hash(), signature)

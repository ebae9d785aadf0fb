"""Claims: rules of EV-30 as pure functions of a transaction.

An id of a set is absent, claimed until its lease ends, or done. A lease runs by the store's clock. `commit` states a
fact, so anybody may do it, also after the lease has lapsed; `release` is the owner's alone.
"""

from enum import StrEnum
from typing import Final

from pubsub_emulator.distributor.once.transaction import Transaction

CLAIMS: Final = "claims"
"""The table of running claims; a row is `<end of the lease in ms>|<owner>`."""


class Claim(StrEnum):
    """The outcome of a claim."""

    CLAIMED = "Claimed"
    IN_FLIGHT = "InFlight"
    DONE = "Done"


def lease_end(tx: Transaction, set_name: str, member: str) -> int:
    """When the last claim's lease ends or ended, in ms; 0 where there is no claim."""
    held = tx.get(CLAIMS, f"{set_name}|{member}")
    return 0 if held is None else int(held.partition("|")[0])


def owner_of(tx: Transaction, set_name: str, member: str) -> str | None:
    """The owner that claimed the id last and neither committed nor released it, also after the lease has lapsed."""
    held = tx.get(CLAIMS, f"{set_name}|{member}")
    return None if held is None else held.partition("|")[2]


def claim(tx: Transaction, set_name: str, member: str, owner: str, lease: int) -> Claim:
    """Claim an id for `lease` ms. A lease that lapsed without a commit makes the id claimable again."""
    if tx.has(set_name, member):
        return Claim.DONE
    if lease_end(tx, set_name, member) > tx.now:
        return Claim.IN_FLIGHT
    renew(tx, set_name, member, owner, lease)
    return Claim.CLAIMED


def renew(tx: Transaction, set_name: str, member: str, owner: str, lease: int) -> None:
    """Start the lease of a claim, or start it again for the owner that has it, lapsed or not."""
    tx.put(CLAIMS, f"{set_name}|{member}", f"{tx.now + lease}|{owner}")


def forget(tx: Transaction, set_name: str, member: str) -> None:
    """Remove a claim of any owner."""
    if tx.get(CLAIMS, f"{set_name}|{member}") is not None:
        tx.delete(CLAIMS, f"{set_name}|{member}")


def commit(tx: Transaction, set_name: str, member: str) -> None:
    """Mark the id as done, also without a claim (EV-31)."""
    tx.add(set_name, member)
    forget(tx, set_name, member)


def release(tx: Transaction, set_name: str, member: str, owner: str) -> bool:
    """Give a claim back. Returns whether `owner` had it; what is done stays done."""
    if owner_of(tx, set_name, member) != owner:
        return False
    tx.delete(CLAIMS, f"{set_name}|{member}")
    return True


def revoke(tx: Transaction, set_name: str, member: str) -> bool:
    """Take a commit back that proved untrue. Returns whether there was one."""
    if not tx.has(set_name, member):
        return False
    tx.remove(set_name, member)
    return True

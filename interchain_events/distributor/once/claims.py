"""Claims on the members of a set: the rules of EV-30 as functions of a transaction.

A member is absent, claimed until its lease ends, or done, that is, in the set. Leases are measured
by the store's clock. A commit states a fact, so every process may commit, even after its lease has
lapsed. Only the owner of a claim may release it.
"""

from enum import StrEnum
from typing import Final

from interchain_events.distributor.once.transaction import Transaction

CLAIMS: Final = "claims"
"""The table of current claims, by `set|member`. A row is `<end of the lease in ms>|<owner>`."""


class Claim(StrEnum):
    """The outcome of a claim."""

    CLAIMED = "Claimed"
    """The caller has the claim."""
    IN_FLIGHT = "InFlight"
    """Another claim's lease has not ended."""
    DONE = "Done"
    """The member is in the set."""


def lease_end(tx: Transaction, set_name: str, member: str) -> int:
    """Return the time in ms at which the lease of the latest claim ends, also if it is past.

    Returns 0 if there is no claim.
    """
    row = tx.get(CLAIMS, f"{set_name}|{member}")
    return 0 if row is None else int(row.partition("|")[0])


def owner_of(tx: Transaction, set_name: str, member: str) -> str | None:
    """Return the owner of the latest claim, `None` if it was committed or released.

    The lease may have lapsed. The owner may still finish its work as long as no other process has
    claimed the member.
    """
    row = tx.get(CLAIMS, f"{set_name}|{member}")
    return None if row is None else row.partition("|")[2]


def claim(tx: Transaction, set_name: str, member: str, owner: str, lease: int) -> Claim:
    """Claim a member for `lease` ms.

    If an earlier lease has lapsed without a commit, the member can be claimed again.
    """
    if tx.has(set_name, member):
        return Claim.DONE
    if lease_end(tx, set_name, member) > tx.now:
        return Claim.IN_FLIGHT
    renew(tx, set_name, member, owner=owner, lease=lease)
    return Claim.CLAIMED


def renew(tx: Transaction, set_name: str, member: str, owner: str, lease: int) -> None:
    """Start or restart the lease of a claim, `lease` ms long.

    The caller must know that it may claim, because this checks neither the set nor the owner.
    """
    tx.put(CLAIMS, f"{set_name}|{member}", f"{tx.now + lease}|{owner}")


def forget(tx: Transaction, set_name: str, member: str) -> None:
    """Remove a claim, whoever owns it, if there is one."""
    if tx.get(CLAIMS, f"{set_name}|{member}") is not None:
        tx.delete(CLAIMS, f"{set_name}|{member}")


def commit(tx: Transaction, set_name: str, member: str) -> None:
    """Add a member to the set and remove its claim. It need not be claimed (EV-31)."""
    tx.add(set_name, member)
    forget(tx, set_name, member)


def release(tx: Transaction, set_name: str, member: str, owner: str) -> bool:
    """Remove the claim of a member if `owner` has it. Returns whether it did.

    A member that is done remains done.
    """
    if owner_of(tx, set_name, member) != owner:
        return False
    tx.delete(CLAIMS, f"{set_name}|{member}")
    return True


def revoke(tx: Transaction, set_name: str, member: str) -> bool:
    """Remove a member from the set because its commit proved untrue.

    Returns whether it was in the set.
    """
    if not tx.has(set_name, member):
        return False
    tx.remove(set_name, member)
    return True

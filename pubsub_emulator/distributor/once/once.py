"""`Once`: claims over any store, each call one atomic step (EV-30)."""

from functools import partial

from pubsub_emulator.distributor.once import claims
from pubsub_emulator.distributor.once.transaction import Store


class Once:
    """Claims of one owner. An owner is one run of one process: give each run a name of its own."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner

    def claim(self, set_name: str, member: str, lease: int) -> claims.Claim:
        """Claim `member` of `set_name` for `lease` ms by the store's clock."""
        return self._store.transact(
            partial(claims.claim, set_name=set_name, member=member, owner=self._owner, lease=lease)
        )

    def commit(self, set_name: str, member: str) -> None:
        """Mark the member as done. Nobody can claim it again unless the commit is revoked."""
        self._store.transact(partial(claims.commit, set_name=set_name, member=member))

    def release(self, set_name: str, member: str) -> bool:
        """Give the claim back; returns whether this owner had it."""
        return self._store.transact(partial(claims.release, set_name=set_name, member=member, owner=self._owner))

    def revoke(self, set_name: str, member: str) -> bool:
        """Take back a commit that proved untrue; returns whether there was one."""
        return self._store.transact(partial(claims.revoke, set_name=set_name, member=member))

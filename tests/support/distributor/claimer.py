"""Claims and commits one id after the other until it is killed, and prints each id once it is
committed.
"""

import sys

from interchain_events.distributor.once import Claim, Transaction, claim, commit, open_store


def main(address: str, lease: int) -> None:
    store = open_store(address)
    number = 0
    while True:
        name = f"id{number:05}"

        def both(tx: Transaction, name: str = name) -> None:
            commit(tx, "s", name)
            tx.put("log", name, "1")

        if (
            store.transact(lambda tx, name=name: claim(tx, "s", name, "worker", lease))
            is not Claim.CLAIMED
        ):
            raise SystemExit(f"{name} was not free")
        store.transact(both)
        print(name, flush=True)  # noqa: T201  # what the test reads
        number += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

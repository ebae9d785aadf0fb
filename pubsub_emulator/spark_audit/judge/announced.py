"""The check of the tables `authorities` and `subscriptions` against the states of a chain."""

from collections.abc import Iterator, Sequence

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import decode_spec
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.rows import encode_items


class Announced:
    """One segment's rows of `authorities` and `subscriptions` about one chain.

    A row states the collators or subscriptions from a block on, and is compared with the state
    before that block. Each change within the segment must have a row. At the beginning of the
    chain's history (`first`), both tables must have one. Rows about blocks before the segment
    cannot be checked.

    The judgement calls `reach` after each block, and `errors` at the end of the segment.
    """

    def __init__(self, rows: Sequence[Row], start: Header, state: State, *, first: bool) -> None:
        self._keys = {row["from_block"]: row for row in rows if "keys" in row}
        self._items = {row["from_block"]: row for row in rows if "items" in row}
        self._errors: list[str] = []
        # Two rows for the same block have become one entry.
        if len(self._keys) + len(self._items) != len(rows):
            self._errors.append(
                f"authorities or subscriptions have two rows for one block, of {len(rows)} rows"
            )
        self._start = start.number
        self._last = start.number
        self._code = _code(state)
        self._authorities = AUTHORITIES.get(Storage(state))
        self._compare(start.number + 1, state, changed=first, new_keys=first)

    def reach(self, header: Header, state: State) -> None:
        """Compare the rows about the block after `header` with `state`, in which it is executed.

        After a refused candidate, the header is that of the last call, which has compared the rows.
        """
        if header.number == self._last:
            return
        self._last = header.number
        code = _code(state)
        keys = AUTHORITIES.get(Storage(state))
        changed = code != self._code and _subscriptions(code) != _subscriptions(self._code)
        new_keys = keys != self._authorities
        following = header.number + 1
        # Comparing is expensive because it decodes the runtime.
        if changed or new_keys or following in self._keys or following in self._items:
            self._compare(following, state, changed=changed, new_keys=new_keys)
        self._code = code
        self._authorities = keys

    def errors(self) -> Iterator[str]:
        """Yield the contradictions that were found. Call it once, at the end of the segment."""
        yield from self._errors
        for number in sorted({*self._keys, *self._items}):
            # Rows about blocks before the segment cannot be checked.
            if number > self._start:
                yield (
                    f"authorities or subscriptions have a row for block {number}, which the segment"
                    " does not reach"
                )

    def _compare(self, number: int, state: State, *, changed: bool, new_keys: bool) -> None:
        """Compare the rows that hold from block `number` on with the state before it.

        A missing row is an error if the subscriptions `changed` or the collators' keys did
        (`new_keys`). Compared rows are removed, so that `errors` finds those that are never
        reached.
        """
        keys = self._keys.pop(number, None)
        items = self._items.pop(number, None)
        if keys is None and new_keys:
            self._errors.append(
                f"authorities has no row for block {number}, from which other collators author"
            )
        if keys is not None and tuple(keys["keys"]) != AUTHORITIES.get(Storage(state)):
            self._errors.append(
                f"authorities and the state have different collators from block {number} on"
            )
        subscribed = _subscriptions(_code(state))
        if items is None and changed:
            error = (
                f"subscriptions has no row for block {number}, from which the chain has other"
                " subscriptions"
            )
            self._errors.append(error)
        if items is not None:
            stated = {row["publisher"]: row["keys"] for row in items["items"]}
            # The publishers must be in the same order, each of them once.
            same_items = (
                stated == subscribed
                and list(stated) == list(subscribed)
                and len(stated) == len(items["items"])
            )
            if not same_items or items["hash"] != blake2_256(encode_items(subscribed)):
                self._errors.append(f"subscriptions and the state differ from block {number} on")


def _code(state: State) -> bytes:
    return state.top.get(CODE) or b""


def _subscriptions(code: bytes) -> dict[int, list[bytes]]:
    """Return the keys that a runtime subscribes to, by publisher."""
    return {int(para): list(keys) for para, keys in decode_spec(code).subscriptions.items()}

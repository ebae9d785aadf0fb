"""A process's memory of a store's values, over which a step can run before the store is asked.

Asking a distant store for each value would be slow. So a step runs over beliefs first: the values
that this process has last seen. Then the store is asked once about everything that the step read.
If a value was wrong, the step runs again over the corrected beliefs. Its writes are applied only if
it has read the stored values.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, Generic

from interchain_events.distributor.once.transaction import Place, Read, Reader, Step, T, Transaction

BELIEVED: Final = 40_000
"""The greatest number of values that are remembered. Beyond it, the older half of each table is
forgotten."""
BELIEVED_BYTES: Final = 32 * 2**20
"""The greatest size of the remembered keys and values, in characters. Clients decide how long they
are, so their number alone bounds no memory."""


class Beliefs:
    """Remembered values by place. An unknown place is believed to be empty."""

    def __init__(self) -> None:
        self._parts: defaultdict[tuple[str, str], dict[str, str | None]] = defaultdict(dict)
        """The values by key, for each kind and name of a table or set."""
        self._count = 0
        """The number of all values."""
        self._size = 0
        """The characters of all keys and values, counted again when values are forgotten."""

    def reader(self, kind: str, name: str) -> Read:
        """Return the function that reads the beliefs about a table or set."""
        return self._parts[kind, name].get

    def learn(self, place: Place, value: str | None) -> None:
        """Believe a value at a place, `None` for absent."""
        kind, name, key = place
        self._add(kind, name, {key: value})

    def learn_all(self, tx: Transaction) -> None:
        """Believe the values of an applied step: those that it has read or written."""
        for kind, name, part in tx.parts():
            self._add(kind, name, part.values)

    def _add(self, kind: str, name: str, values: dict[str, str | None]) -> None:
        """Remember values of one table or set, and forget old ones if there are too many."""
        known = self._parts[kind, name]
        self._count -= len(known)
        known.update(values)
        self._count += len(known)
        # Replaced values are counted twice until the next count, which only comes earlier then.
        self._size += _size(values)
        if self._count > BELIEVED or self._size > BELIEVED_BYTES:
            # Dictionaries keep the order of insertion, so the first half is the older one.
            halves = {
                place: list(known.items())[len(known) // 2 + 1 :]
                for place, known in self._parts.items()
            }
            self._parts = defaultdict(
                dict, {place: dict(half) for place, half in halves.items() if half}
            )
            self._count = sum(map(len, self._parts.values()))
            self._size = sum(map(_size, self._parts.values()))
            if self._size > BELIEVED_BYTES // 2:
                self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._parts.clear()
        self._count = 0
        self._size = 0


def _size(values: Mapping[str, str | None]) -> int:
    """Return the characters of keys and values."""
    return sum(len(key) + len(value or "") for key, value in values.items())


class Attempt(Generic[T]):
    """One run of a step, maybe over wrong beliefs.

    A run over wrong values may fail in any way. So its exception is stored and counts only if all
    values prove true. A failed run writes nothing.
    """

    def __init__(self, step: Step[T], read: Reader, now: int) -> None:
        self.tx = Transaction(read, now)
        self.failure: Exception | None = None
        """The exception of the step, `None` if it ended well."""
        self._result: T | None = None
        try:
            self._result = step(self.tx)
        except Exception as error:  # noqa: BLE001  # raised by `end`, if what the step read is true
            self.failure = error
            self.tx.undo()

    def end(self) -> T:
        """Return the result of the run, or raise its exception."""
        if self.failure is not None:
            raise self.failure
        return self._result  # type: ignore[return-value]  # a step without failure returned a T

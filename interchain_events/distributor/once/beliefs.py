"""A process's memory of a store's values, over which a step can run before the store is asked.

Asking a distant store for each value would be slow. So a step first runs over beliefs, the values
that this process has last seen. Then one question to the store checks all values that the step has
read. If one was wrong, the step runs again over corrected beliefs. Its writes are applied only if
all values that it read are the stored ones.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, Generic

from interchain_events.distributor.once.transaction import Place, Read, Reader, Step, T, Transaction

BELIEVED: Final = 40_000
"""The greatest number of remembered values. If it is exceeded, the older half of each table is
forgotten."""
BELIEVED_BYTES: Final = 32 * 2**20
"""The greatest size of the remembered keys and values, in characters. Clients choose their lengths,
so a limit on the number alone would not limit the memory."""


class Beliefs:
    """Remembered values by place. A place that is not remembered is believed to be empty."""

    def __init__(self) -> None:
        self._parts: defaultdict[tuple[str, str], dict[str, str | None]] = defaultdict(dict)
        """The values by key, for each kind and name of a table or set."""
        self._count = 0
        """The number of all values."""
        self._size = 0
        """The characters of all keys and values, or more: replaced values are counted twice until
        values are forgotten."""

    def reader(self, kind: str, name: str) -> Read:
        """Return the function that reads the beliefs about a table or set."""
        return self._parts[kind, name].get

    def learn(self, place: Place, value: str | None) -> None:
        """Remember the value of a place, `None` if the place is empty."""
        kind, name, key = place
        self._add(kind, name, {key: value})

    def learn_all(self, tx: Transaction) -> None:
        """Remember the values that an applied step has read or written."""
        for kind, name, buffer in tx.buffers():
            self._add(kind, name, buffer.values)

    def _add(self, kind: str, name: str, values: dict[str, str | None]) -> None:
        """Remember values of one table or set, and forget old ones if there are too many."""
        part = self._parts[kind, name]
        self._count -= len(part)
        part.update(values)
        self._count += len(part)
        self._size += _size(values)
        if self._count > BELIEVED or self._size > BELIEVED_BYTES:
            self._forget_older()

    def _forget_older(self) -> None:
        """Forget the older half of each table and set, or everything if the rest is still large."""
        parts: defaultdict[tuple[str, str], dict[str, str | None]] = defaultdict(dict)
        for place, part in self._parts.items():
            # Dictionaries keep the order of insertion, so the first half is the older one.
            younger = list(part.items())[len(part) // 2 + 1 :]
            if younger:
                parts[place] = dict(younger)
        self._parts = parts
        self._count = sum(map(len, parts.values()))
        self._size = sum(map(_size, parts.values()))
        if self._size > BELIEVED_BYTES // 2:
            self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._parts.clear()
        self._count = 0
        self._size = 0


def _size(values: Mapping[str, str | None]) -> int:
    """Return the number of characters of keys and values."""
    return sum(len(key) + len(value or "") for key, value in values.items())


class Attempt(Generic[T]):
    """One run of a step, possibly over wrong beliefs.

    A run over wrong values may fail in any way. So its exception is stored, and is raised only if
    all values prove true. The writes of a failed run are discarded.
    """

    def __init__(self, step: Step[T], read: Reader, now: int) -> None:
        self.tx = Transaction(read, now)
        self.failure: Exception | None = None
        """The exception of the step, `None` if it ended well."""
        self._result: T | None = None
        try:
            self._result = step(self.tx)
        except Exception as error:  # noqa: BLE001  # `end` raises it if the values were true
            self.failure = error
            self.tx.undo()

    def end(self) -> T:
        """Return the result of the run, or raise its exception."""
        if self.failure is not None:
            raise self.failure
        return self._result  # type: ignore[return-value]  # a step without failure returned a T

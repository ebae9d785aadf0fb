"""A process's beliefs of a store: a step runs over beliefs first, and again over what the store says is wrong.

So a step costs one question about everything it read, not one for each value. What is applied is always what the step
makes of the stored values.
"""

from collections import defaultdict
from typing import Final, Generic

from pubsub_emulator.distributor.once.transaction import Place, Read, Reader, Step, T, Transaction

BELIEVED: Final = 40_000
"""The most values kept in this process; of more, the older half of each table is forgotten."""


class Beliefs:
    """Values by place; one of which nothing is known is believed to be absent."""

    def __init__(self) -> None:
        self._parts: defaultdict[tuple[str, str], dict[str, str | None]] = defaultdict(dict)
        self._count = 0

    def reader(self, kind: str, name: str) -> Read:
        """What reads the beliefs of a table or set."""
        return self._parts[kind, name].get

    def learn(self, place: Place, value: str | None) -> None:
        """Believe a value."""
        kind, name, key = place
        self._add(kind, name, {key: value})

    def learn_all(self, tx: Transaction) -> None:
        """Believe what a step read that proved true, and what it wrote."""
        for kind, name, part in tx.parts():
            self._add(kind, name, part.values)

    def _add(self, kind: str, name: str, values: dict[str, str | None]) -> None:
        known = self._parts[kind, name]
        self._count -= len(known)
        known.update(values)
        self._count += len(known)
        if self._count > BELIEVED:
            halves = {place: list(known.items())[len(known) // 2 + 1 :] for place, known in self._parts.items()}
            self._parts = defaultdict(dict, {place: dict(half) for place, half in halves.items() if half})
            self._count = sum(map(len, self._parts.values()))

    def clear(self) -> None:
        """Believe nothing."""
        self._parts.clear()
        self._count = 0


class Attempt(Generic[T]):
    """A step that ran, maybe over beliefs. Its failure counts only if what it read is true; it then writes nothing."""

    def __init__(self, step: Step[T], read: Reader, now: int) -> None:
        self.tx = Transaction(read, now)
        self._failure: Exception | None = None
        self._result: T | None = None
        try:
            self._result = step(self.tx)
        except Exception as error:  # noqa: BLE001  # raised by `end`, if what the step read is true
            self._failure = error
            self.tx.undo()

    def end(self) -> T:
        """The result, or the failure."""
        if self._failure is not None:
            raise self._failure
        return self._result  # type: ignore[return-value]  # a step without failure returned a T

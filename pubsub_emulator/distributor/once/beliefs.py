"""A process's beliefs of a store: a step runs over beliefs first, and again over what the store says is wrong.

So a step costs one question about everything it read, not one for each value. What is applied is always what the step
makes of the stored values.
"""

from typing import Final, Generic

from pubsub_emulator.distributor.once.transaction import Place, Read, Step, T, Transaction

BELIEVED: Final = 20_000
"""Values kept in this process: the last so many learnt, and at most as many before."""


class Beliefs:
    """Values by place; one of which nothing is known is believed to be absent."""

    def __init__(self) -> None:
        self._young: dict[Place, str | None] = {}
        self._old: dict[Place, str | None] = {}

    def value(self, place: Place) -> str | None:
        """The value at a place."""
        return self._young[place] if place in self._young else self._old.get(place)

    def learn(self, place: Place, value: str | None) -> None:
        """Believe a value."""
        if len(self._young) >= BELIEVED:
            self._old, self._young = self._young, {}
        self._young[place] = value

    def learn_all(self, tx: Transaction) -> None:
        """Believe what a step read that proved true, and what it wrote."""
        for place, value in tx.reads.items():
            if place not in tx.writes:
                self.learn(place, value)
        for place, row in tx.writes.items():
            self.learn(place, None if row is None else row.value)

    def clear(self) -> None:
        """Believe nothing."""
        self._young, self._old = {}, {}


class Attempt(Generic[T]):
    """A step that ran, maybe over beliefs. Its failure counts only if what it read is true; it then writes nothing."""

    def __init__(self, step: Step[T], read: Read, now: int) -> None:
        self.tx = Transaction(read, now)
        self._failure: Exception | None = None
        self._result: T | None = None
        try:
            self._result = step(self.tx)
        except Exception as error:  # noqa: BLE001  # raised by `end`, if what the step read is true
            self._failure = error
            self.tx.writes.clear()

    def end(self) -> T:
        """The result, or the failure."""
        if self._failure is not None:
            raise self._failure
        return self._result  # type: ignore[return-value]  # a step without failure returned a T

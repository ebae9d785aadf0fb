"""Skip: every m-th event, from an offset (IC-27, I3)."""

from typing import NamedTuple

from pubsub_emulator.icrc72.errors import ConfigError
from pubsub_emulator.icrc72.ic.errors import shown
from pubsub_emulator.icrc72.values import Value, array, as_items, as_nat, nat, opened


class Skip(NamedTuple):
    """An event passes when its id is `offset` modulo `mod`."""

    mod: int
    offset: int = 0

    def passes(self, identifier: int) -> bool:
        """True for an event that is delivered."""
        return identifier % self.mod == self.offset

    @property
    def value(self) -> Value:
        """`Array[Nat mod, Nat offset]`, as configurations and alerts have it."""
        return array([nat(self.mod), nat(self.offset)])


def skip_of(value: Value) -> Skip:
    """The skip that `Array[Nat mod, opt Nat offset]` says; the offset may be left out. Raises `ConfigError`."""
    items = as_items(opened(value)) or ()
    numbers = [None if (inside := opened(each)) is None else as_nat(inside) for each in items]
    mod, offset = (*numbers, None, None)[:2]
    if not 1 <= len(items) <= 2 or mod is None or (len(items) == 2 and offset is None and opened(items[1]) is not None):
        raise ConfigError("skip is an Array of one or two Nat")
    if not (offset or 0) < mod:
        raise ConfigError(f"skip has the offset {shown(offset or 0)} modulo {shown(mod)}: it must be below")
    return Skip(mod, offset or 0)

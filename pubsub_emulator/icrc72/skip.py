"""Skip: every m-th event, from an offset (IC-27)."""

from typing import NamedTuple

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.words import shown
from pubsub_emulator.eventplane.icrc72.errors import ConfigError
from pubsub_emulator.eventplane.icrc72.values import array, as_items, as_nat, nat


class Skip(NamedTuple):
    """An event passes when its id is `offset` modulo `mod`."""

    mod: int
    offset: int = 0

    def passes(self, identifier: int) -> bool:
        """True for an event that is delivered."""
        return identifier % self.mod == self.offset

    @property
    def value(self) -> Variant:
        """`Array[Nat mod, Nat offset]`, as configurations and alerts have it."""
        return array([nat(self.mod), nat(self.offset)])


def skip_of(value: Variant) -> Skip:
    """The skip that `Array[Nat mod, Nat offset?]` says. Raises `ConfigError`."""
    items = as_items(value)
    numbers = None if items is None else [as_nat(each) for each in items]
    if numbers is None or not 1 <= len(numbers) <= 2:
        raise ConfigError("skip is an Array of one or two Nat")
    mod, offset = numbers[0], numbers[1] if len(numbers) == 2 else 0
    if mod is None or offset is None:
        raise ConfigError("skip is an Array of one or two Nat")
    if not 0 <= offset < mod:
        raise ConfigError(f"skip has the offset {shown(offset)} modulo {shown(mod)}: it must be below")
    return Skip(mod, offset)


__all__ = ["Skip", "skip_of"]

"""Compares the values that messages carry between emulated roles with their bytes."""

from dataclasses import fields, is_dataclass

import pytest

from interchain_events.icrc72.ic.candid.carried import EncodedVariant, Message, plain
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.services import Codec


def identical(one: object, other: object) -> bool:
    """Return whether two values and all their parts are equal and of equal types.

    A variant that carries its encoding counts as one without.
    """
    if isinstance(one, EncodedVariant):
        one = Variant(*one)
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(identical, one, other))
    if is_dataclass(one):
        return all(
            identical(getattr(one, each.name), getattr(other, each.name)) for each in fields(one)
        )
    return one == other


def compare_carried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let every message that carries values be decoded, too. Returns how many there were."""
    seen = [0]
    values = Codec.values

    def compared(self: Codec, data: bytes) -> tuple[object, ...]:
        taken = values(self, data)
        if isinstance(data, Message) and data.made_by is self:
            seen[0] += 1
            decoded = self.decode(plain(data))
            assert identical(taken, decoded), f"carried: {taken}, decoded: {decoded}"
        return taken

    monkeypatch.setattr(Codec, "values", compared)
    return seen

"""The rules that a user's file may replace.

Each rule has a seam, and the shipped rule is used for each seam that the file does not name. A file
of rules has functions with the decorator `rule`, each with the name of its seam.

Rules are a value. They are passed to a runtime when it is built: to the relay chain's with the
configuration of its pallet, to a parachain's with the `ChainHead` on which a block is made or
judged. Nothing in this process is chosen or registered, so that networks with different rules can
run side by side.

The digest of the file is a part of a parachain's `:code`. `Rules.named` compares it with the rules
that were passed, so that relay chain, author, validator and audit use the same rules, and a state
that names others is refused.

Rules must be pure functions, or two nodes disagree. If a rule raises, or its result does not have
the type of the seam, `RuleFailed` names the file and line.
"""

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import CodeType
from typing import Final, NamedTuple, TypeVar

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.pubsub import (
    PublishedEntry,
    derive_child_key,
    publisher_root_key,
)
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import U32_MAX, Hash, ParaId, PubsubKey, RelayBlockNumber

Item = tuple[ParaId, PubsubKey]
_Function = TypeVar("_Function", bound=Callable[..., object])


class RulesError(PubsubError):
    """Rules that cannot be used, or that differ from those that a state names."""


class RuleFailed(RulesError):
    """A user's rule raised, or returned a value that its seam does not take.

    The message has the file and line.
    """


class Row(NamedTuple):
    """A finite entry for the rule `order`; `expiry` is a relay block."""

    para: int
    key: bytes
    expiry: int


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules by seam, `None` for the shipped rule."""

    digest: bytes = b""
    """The digest of the file, empty for the shipped rules."""
    path: str = ""
    """The path of the file, empty for the shipped rules."""
    constants: Callable[[object], object] | None = None
    may_publish: Callable[[int, bool, bool], bool] | None = None
    lifetime: Callable[[int, int, int, int], int] | None = None
    deposit: Callable[[int, int], int] | None = None
    order: Callable[[Iterable[Row], int], Iterable[Row]] | None = None
    expired: Callable[[int, int], bool] | None = None
    runtime: Callable[[object], object] | None = None
    reserve: Callable[[int], int] | None = None
    resume: Callable[[Item | None, tuple[ParaId, ...]], Item | None] | None = None
    share: Callable[[int, int, int], int] | None = None
    keep: (
        Callable[[int, Mapping[Hash, bytes], tuple[PubsubKey, ...]], Mapping[Hash, bytes]] | None
    ) = None
    roots: (
        Callable[[Mapping[ParaId, Hash], Mapping[ParaId, Hash]], Mapping[ParaId, Hash]] | None
    ) = None
    deliver: Callable[[int, bytes, int | None], bool] | None = None
    checks: Callable[[tuple[str, ...]], tuple[str, ...]] | None = None
    encode: Callable[[bytes, int, int], bytes] | None = None
    decode: Callable[[bytes], tuple[bytes, int, int]] | None = None
    clock: Callable[[int, int], int] | None = None
    place: Callable[[int], tuple[bytes, bytes]] | None = None
    message_limit: Callable[[int, int], int] | None = None
    horizontal_room: Callable[[int, int, int], int] | None = None
    may_hash: Callable[[int, int, int], bool] | None = None

    def named(self, digest: bytes) -> "Rules":
        """Return the rules that a runtime names by their digest, empty for the shipped rules.

        They are these rules or the shipped ones. Raises `RulesError` if the runtime names others.
        """
        if digest == self.digest:
            return self
        if not digest:
            return SHIPPED
        raise RulesError(f"the rules 0x{digest.hex()} are not loaded; `--rules` names their file")

    def time(self, number: int, slot: bytes | None) -> RelayBlockNumber:
        """Return the time from which lifetimes count in relay block `number`.

        `slot` is the stored encoding of the block's slot, which a rule `clock` may use.
        """
        now = (
            number
            if self.clock is None
            else self.clock(number, int.from_bytes(slot or b"", "little"))
        )
        return RelayBlockNumber(now)

    def placed(self, para: ParaId, keys: Iterable[bytes]) -> tuple[bytes, list[bytes]]:
        """Return the storage key of a publisher's child trie, and its names for `keys`."""
        child, prefix = (derive_child_key(para), b"") if self.place is None else self.place(para)
        return child, [prefix + key for key in keys]

    def root_key(self, para: ParaId) -> bytes:
        """Return the top trie's key for the root of a publisher's child trie."""
        if self.place is None:
            return publisher_root_key(para)
        return child_root_key(self.placed(para, ())[0])

    def to_stored(self, entry: bytes) -> bytes:
        """Convert an encoded `PublishedEntry` to the bytes that the child trie stores."""
        return entry if self.encode is None else self.encode(*PublishedEntry.decode(entry))

    def from_stored(self, data: bytes) -> bytes:
        """Convert the bytes that a child trie stores to an encoded `PublishedEntry`.

        Raises `RuleFailed`.
        """
        return data if self.decode is None else self.read(data).encode()

    def read(self, data: bytes) -> PublishedEntry:
        """Decode the bytes that a child trie stores.

        Raises `ScaleError` and `RuleFailed`.
        """
        if self.decode is None:
            return PublishedEntry.decode(data)
        value, ttl, inserted = self.decode(data)
        return PublishedEntry(value, ttl, RelayBlockNumber(inserted))


class Seam(NamedTuple):
    """A place for a rule: its arguments, its result, and the meaning of the result."""

    arguments: str
    returns: type | tuple[type, ...]
    meaning: str
    shipped: str


SEAMS: Final[dict[str, Seam]] = {
    "constants": Seam(
        "config", object, "The relay chain's limits, deposit, clean-up policy and cap.", "config"
    ),
    "may_publish": Seam(
        "para, registered, system", bool, "Who may publish.", "registered or system"
    ),
    "clock": Seam(
        "number, slot", int, "The time in which lifetimes are counted, for a relay block.", "number"
    ),
    "lifetime": Seam(
        "ttl, para, size, now", int, "The lifetime stored for a publish, 0 forever.", "ttl"
    ),
    "deposit": Seam("para, amount", int, "What a registration holds, in plancks.", "amount"),
    "order": Seam(
        "rows, now", list, "The finite entries in the order of clean-up.", "from the cursor on"
    ),
    "encode": Seam(
        "value, ttl, inserted", bytes, "An entry as it is stored; `decode` is its inverse.", "SCALE"
    ),
    "decode": Seam(
        "data", tuple, "Value, ttl and block of insertion of what `encode` made.", "SCALE"
    ),
    "place": Seam(
        "para",
        tuple,
        "Storage key of a publisher's child trie, prefix of its keys.",
        "one trie each",
    ),
    "expired": Seam("expiry, now", bool, "Whether clean-up removes an entry.", "expiry <= now"),
    "runtime": Seam("spec", object, "A subscriber's runtime: cache, budget, depth.", "spec"),
    "reserve": Seam(
        "item_cost", int, "Bytes that must be left before anything is read.", "item_cost"
    ),
    "resume": Seam(
        "cursor, publishers", (tuple, type(None)), "The item at which a walk begins.", "cursor"
    ),
    "share": Seam(
        "room, para, waiting", int, "Bytes that a publisher may use of a block's budget.", "room"
    ),
    "message_limit": Seam(
        "max_pov, remaining",
        int,
        "Bytes of full messages of each kind in a block.",
        "min(max_pov // 6, remaining // 2)",
    ),
    "horizontal_room": Seam(
        "max_pov, remaining, downward",
        int,
        "Bytes of full horizontal messages beside `downward` bytes of downward ones.",
        "2 * limit - downward",
    ),
    "may_hash": Seam(
        "full, largest, limit",
        bool,
        "Whether downward messages may be hashed after `full` bytes of them.",
        "True",
    ),
    "keep": Seam(
        "para, nodes, keys", Mapping, "The walked nodes that policy `nodes` caches.", "nodes"
    ),
    "roots": Seam("before, after", Mapping, "The roots that count as processed.", "after"),
    "deliver": Seam(
        "para, key, left", bool, "Whether the handler is called for a changed entry.", "True"
    ),
    "checks": Seam(
        "verdicts", tuple, "The verdicts that a block is refused for, of those found.", "verdicts"
    ),
}
"""The seams by name, in the order in which a published key meets them."""

SHIPPED: Final = Rules()
"""The rules of this program. Every process has them."""
MARK: Final = "__pubsub_rule__"
_SIZES: Final = frozenset({"deposit", "reserve", "share", "message_limit", "horizontal_room"})
"""The seams whose results may not be negative."""


def rule(function: _Function) -> _Function:
    """Mark a function of a file as the rule of the seam with its name.

    Raises `RulesError` if there is no such seam or if the number of arguments is wrong.
    """
    name = getattr(function, "__name__", "")
    if name not in SEAMS:
        near = ", ".join(get_close_matches(name, SEAMS, n=3, cutoff=0))
        raise RulesError(f"unknown rule {name!r}; did you mean {near}?")
    code = getattr(function, "__code__", None)
    count = SEAMS[name].arguments.count(",") + 1
    if not isinstance(code, CodeType) or code.co_argcount != count or code.co_flags & 0x0C:
        raise RulesError(f"the rule {name!r} takes {count} arguments: {SEAMS[name].arguments}")
    setattr(function, MARK, name)
    return function


def make_rules(path: str, digest: bytes, functions: Mapping[str, Callable[..., object]]) -> Rules:
    """Make rules of a file's functions, which are wrapped to raise only `RuleFailed`."""
    guarded = {name: _guarded(path, name, function) for name, function in functions.items()}
    return Rules(digest, path, **guarded)  # type: ignore[arg-type]  # `rule` checked names, `_guarded` checks results


def _guarded(path: str, name: str, function: Callable[..., object]) -> Callable[..., object]:
    """Wrap a rule so that it raises only `RuleFailed` and returns a value that its seam takes."""
    accepted = SEAMS[name].returns
    first = getattr(getattr(function, "__code__", None), "co_firstlineno", 0)

    def call(*arguments: object) -> object:
        try:
            result = function(*arguments)
            if name == "order" and isinstance(result, Iterable):
                # A generator runs, and raises, only when it is read, so it is read here.
                result = [Row(*item) for item in result]
        except KeyboardInterrupt:
            raise
        # The file is a stranger's code, so any exception is reported with its place.
        except BaseException as error:
            lines = [
                item.lineno
                for item in traceback.extract_tb(error.__traceback__)
                if item.filename == path
            ]
            line = lines[-1] if lines else first
            raise RuleFailed(
                f"{path}, line {line}: rule {name!r}: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(result, accepted) or (accepted is int and isinstance(result, bool)):
            kinds = accepted if isinstance(accepted, tuple) else (accepted,)
            expected = " or ".join(
                "None" if kind is type(None) else kind.__name__ for kind in kinds
            )
            raise RuleFailed(
                f"{path}, line {first}: rule {name!r} returned {result!r:.60}, not {expected}"
            )
        if name == "decode" and not _is_entry(result):
            raise RuleFailed(
                f"{path}, line {first}: rule 'decode' returned {result!r:.60}, not value, u32"
                " and u32"
            )
        if name == "place" and not _is_place(result):
            raise RuleFailed(
                f"{path}, line {first}: rule 'place' returned {result!r:.60}, not two bytes values"
            )
        if name in {"clock", "lifetime"} and isinstance(result, int) and not 0 <= result <= U32_MAX:
            raise RuleFailed(
                f"{path}, line {first}: rule {name!r} returned {result}, which is not a u32"
            )
        if name in _SIZES and isinstance(result, int) and result < 0:
            raise RuleFailed(
                f"{path}, line {first}: rule {name!r} returned {result}, which is negative"
            )
        return result

    return call


def _is_entry(result: object) -> bool:
    match result:
        case (bytes(), int(ttl), int(inserted)):
            return 0 <= ttl <= U32_MAX and 0 <= inserted <= U32_MAX
        case _:
            return False


def _is_place(result: object) -> bool:
    return (
        isinstance(result, tuple)
        and len(result) == 2
        and all(isinstance(part, bytes) for part in result)
    )

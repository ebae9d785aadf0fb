"""The transaction pool of one chain (ND-16).

It contains the extrinsics that wait for a block, decides the order in which a block takes them, and
removes those that a new block makes invalid.

An extrinsic is *ready* if its nonce is its account's next one, or if extrinsics with all nonces in
between are in the pool. Otherwise it is *future*. For an account and nonce, the pool contains only
the extrinsic with the highest priority. A full pool drops the extrinsics with the lowest priority
first, and among equal priorities those that arrived last.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Final, Literal

from pubsub_emulator.node.at import At
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import AccountId, Hash
from pubsub_emulator.runtime.accounts.apply import CheckedExtrinsic, Circumstances, priority
from pubsub_emulator.runtime.accounts.chain import NextBlock
from pubsub_emulator.runtime.accounts.extrinsic import Era, UndecodableExtrinsic
from pubsub_emulator.runtime.framework.validity import Invalidity, InvalidTransaction

MAX_EXTRINSICS: Final = 8_192
"""The default number of extrinsics in a pool."""
MAX_BYTES: Final = 20 * 1_048_576
"""The default size of all extrinsics in a pool."""
MOST_EXTRINSIC: Final = 262_144
"""The maximum size of one extrinsic in bytes. Deeply nested calls take seconds to decode."""

Kind = Literal["future", "ready", "usurped", "dropped", "invalid", "retracted"]
"""A status of an extrinsic.

It has left the pool if it is `usurped` (replaced by another one with its nonce), `dropped` or
`invalid`. It is `retracted` if its block has left the best chain.
"""

# Refusals have the codes and messages of a Substrate node, because clients match them.

_MESSAGES: Final = {
    Invalidity.CALL: "Transaction call is not expected",
    Invalidity.PAYMENT: "Inability to pay some fees (e.g. account balance too low)",
    Invalidity.FUTURE: "Transaction will be valid in the future",
    Invalidity.STALE: "Transaction is outdated",
    Invalidity.BAD_PROOF: "Transaction has a bad signature",
    Invalidity.ANCIENT_BIRTH_BLOCK: "Transaction has an ancient birth block",
    Invalidity.EXHAUSTS_RESOURCES: "Transaction would exhaust the block limits",
    Invalidity.BAD_MANDATORY: "A call was labelled as mandatory, but resulted in an Error.",
    Invalidity.BAD_SIGNER: "Invalid signing address",
    Invalidity.CANNOT_LOOKUP: "CannotLookup",
    Invalidity.NO_UNSIGNED_VALIDATOR: "NoUnsignedValidator",
}
"""The message for each reason for which the runtime refuses an extrinsic."""


class Refused(PubsubError):
    """An extrinsic that the pool does not accept, as JSON-RPC code, message and data."""

    def __init__(self, code: int, message: str, data: str | None = None) -> None:
        super().__init__(message if data is None else f"{message}: {data}")
        self.code = code
        self.message = message
        self.data = data


def _of_format(detail: str) -> Refused:
    return Refused(1001, f"Extrinsic has invalid format: {detail}")


def _of_validity(error: InvalidTransaction) -> Refused:
    """Return the refusal of an extrinsic that the runtime considers invalid."""
    message = _MESSAGES[error.why]
    if error.why.unknown:
        return Refused(1011, "Unknown Transaction Validity", f'"{message}"')
    return Refused(1010, "Invalid Transaction", message)


def _of_known(name: Hash) -> Refused:
    return Refused(1013, "Transaction Already Imported", f"[{hexed(name)}]")


def _of_priority(old: int, new: int) -> Refused:
    """Return the refusal of an extrinsic whose nonce is taken.

    The extrinsic in the pool has the same or a higher priority.
    """
    why = "The transaction has too low priority to replace another transaction already in the pool."
    return Refused(1014, f"Priority is too low: ({old} vs {new})", why)


def _of_limit() -> Refused:
    return Refused(
        1016, "Immediately Dropped", "The transaction couldn't enter the pool because of the limit"
    )


@dataclass(frozen=True, slots=True)
class PoolChange:
    """A change of an extrinsic's status in the pool."""

    hash: Hash
    """The hash of the extrinsic."""
    kind: Kind
    by: Hash | None = None
    """The hash of the extrinsic that replaced it, if `kind` is `usurped`."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One extrinsic in the pool."""

    hash: Hash
    """The BLAKE2 hash of the extrinsic's bytes including their length prefix."""
    raw: bytes
    """The extrinsic with its length prefix."""
    account: AccountId
    nonce: int
    priority: int
    arrival: int
    """A number that grows with each accepted extrinsic. Lower numbers come first among equal
    priorities.
    """
    era: Era
    """The range of blocks in which the extrinsic is valid."""
    circumstances: Circumstances
    """The part of the state that the last check depended on. If it is unchanged, the extrinsic is
    still valid and is not checked again.
    """


def check(at: At, extrinsic: bytes) -> CheckedExtrinsic:
    """Check an extrinsic as the next block after `at` would.

    Raises `Refused` if it is too long, cannot be decoded or is invalid.
    """
    return _check(NextBlock(at.runtime, at.state, at.header), extrinsic)


def _check(block: NextBlock, raw: bytes) -> CheckedExtrinsic:
    """Check an extrinsic in the next block. Raises `Refused`."""
    if len(raw) > MOST_EXTRINSIC:
        raise _of_format(f"{len(raw)} bytes, and at most {MOST_EXTRINSIC}")
    try:
        return block.check(raw)
    except UndecodableExtrinsic as error:
        raise _of_format(str(error)) from error
    except InvalidTransaction as error:
        raise _of_validity(error) from error


class Pool:
    """The pool of one chain. Each argument `at` must be the chain's best block."""

    def __init__(self, max_extrinsics: int = MAX_EXTRINSICS, max_bytes: int = MAX_BYTES) -> None:
        self._max_extrinsics = max_extrinsics
        self._max_bytes = max_bytes
        self._entries: dict[Hash, _Entry] = {}
        """All entries by hash."""
        self._by_account: dict[AccountId, dict[int, _Entry]] = {}
        """The same entries by account and nonce."""
        self._ready: dict[Hash, None] = {}
        """The hashes of ready entries. The dictionary is an ordered set."""
        self._bytes = 0
        """The size of all entries."""
        self._arrivals = 0
        """The number of extrinsics that were ever accepted."""
        self._changes: list[PoolChange] = []
        """Changes of status that `take_changes` has not returned yet."""

    # Asking

    def ready(self) -> tuple[bytes, ...]:
        """Return the ready extrinsics in the order in which a block takes them.

        Extrinsics with a higher priority come first, and then earlier ones. The extrinsics of one
        account stay in the order of their nonces.
        """
        return tuple(entry.raw for entry in self._in_order())

    pending = ready
    """The extrinsics that `author_pendingExtrinsics` returns."""

    @property
    def ready_count(self) -> int:
        """Return the number of extrinsics that can be in the next block."""
        return len(self._ready)

    @property
    def future_count(self) -> int:
        """Return the number of extrinsics that wait for an earlier nonce."""
        return len(self._entries) - len(self._ready)

    def status_of(self, name: Hash) -> Literal["ready", "future"] | None:
        """Return the status of an extrinsic, or `None` if it is not in the pool."""
        if name not in self._entries:
            return None
        return "ready" if name in self._ready else "future"

    def next_index(self, at: At, account: bytes) -> int:
        """Return the next free nonce of an account, counting its extrinsics in the pool."""
        owner = AccountId(account)
        nonce = NextBlock(at.runtime, at.state, at.header).nonce(owner)
        waiting = self._by_account.get(owner, {})
        while nonce in waiting:
            nonce += 1
        return nonce

    def take_changes(self) -> tuple[PoolChange, ...]:
        """Return the changes of status since the last call, in order."""
        changes = tuple(self._changes)
        self._changes = []
        return changes

    def copy(self) -> "Pool":
        """Return an independent copy without pending changes of status."""
        pool = Pool(self._max_extrinsics, self._max_bytes)
        pool._entries = dict(self._entries)
        pool._by_account = {
            account: dict(by_nonce) for account, by_nonce in self._by_account.items()
        }
        pool._ready = dict(self._ready)
        pool._bytes = self._bytes
        pool._arrivals = self._arrivals
        return pool

    # Changing

    def submit(self, at: At, extrinsic: bytes, checked: CheckedExtrinsic | None = None) -> Hash:
        """Add an extrinsic and return its hash.

        `checked` is the result of `check` at the same block, if there is one already. Raises
        `Refused`; the pool is then unchanged.
        """
        return self._take(NextBlock(at.runtime, at.state, at.header), extrinsic, checked)

    def advance(self, at: At, included: Iterable[bytes]) -> None:
        """Move to a new best block that includes the extrinsics `included`.

        The included extrinsics leave the pool, and all others are checked again.
        """
        for raw in included:
            entry = self._entries.get(blake2_256(raw))
            if entry is not None:
                self._remove(entry)
        self._check_again(NextBlock(at.runtime, at.state, at.header))

    def retract(self, at: At, extrinsics: Iterable[bytes]) -> None:
        """Move to a best block on another branch.

        `extrinsics` were in blocks that have left the best chain. They return to the pool if they
        are still valid.
        """
        block = NextBlock(at.runtime, at.state, at.header)
        self._check_again(block)
        for raw in extrinsics:
            name = blake2_256(raw)
            if name in self._entries:
                continue
            self._report(name, "retracted")
            try:
                self._take(block, raw)
            except Refused:
                self._report(name, "invalid")

    def reject(self, at: At, extrinsics: Iterable[bytes]) -> None:
        """Remove extrinsics because a block that took them could not be built."""
        accounts: dict[AccountId, None] = {}
        for raw in extrinsics:
            entry = self._entries.get(blake2_256(raw))
            if entry is not None:
                self._remove(entry)
                self._report(entry.hash, "invalid")
                accounts[entry.account] = None
        self._sort_out(NextBlock(at.runtime, at.state, at.header), accounts)

    def _take(self, block: NextBlock, raw: bytes, checked: CheckedExtrinsic | None = None) -> Hash:
        """Check an extrinsic, make room for it, and add it. Raises `Refused`.

        All refusals are raised before the first change, so that they leave the pool unchanged.
        """
        name = blake2_256(raw)
        if name in self._entries:
            raise _of_known(name)
        if checked is None:
            checked = _check(block, raw)
        extra = checked.extrinsic.extra
        entry = _Entry(
            hash=name,
            raw=raw,
            account=checked.who,
            nonce=extra.nonce,
            priority=priority(extra),
            arrival=self._arrivals,
            era=extra.era,
            circumstances=block.circumstances(checked.who, extra.era),
        )
        replaced = self._by_account.get(entry.account, {}).get(entry.nonce)
        if replaced is not None and replaced.priority >= entry.priority:
            raise _of_priority(replaced.priority, entry.priority)
        dropped = self._to_drop(entry, replaced)
        if replaced is not None:
            self._remove(replaced)
            self._report(replaced.hash, "usurped", name)
        for worse in dropped:
            self._remove(worse)
            self._report(worse.hash, "dropped")
        self._arrivals += 1
        self._add(entry)
        accounts = dict.fromkeys((entry.account, *(worse.account for worse in dropped)))
        self._sort_out(block, accounts, fresh=name)
        return name

    def _to_drop(self, new: _Entry, replaced: _Entry | None) -> list[_Entry]:
        """Return the entries to remove to make room for `new`.

        `replaced` is the entry with the same account and nonce, which leaves in any case. Raises
        `Refused` if `new` itself is the next one to drop.
        """
        excess_count = len(self._entries) + 1 - self._max_extrinsics
        excess_bytes = self._bytes + len(new.raw) - self._max_bytes
        if replaced is not None:
            excess_count -= 1
            excess_bytes -= len(replaced.raw)
        if excess_count <= 0 and excess_bytes <= 0:
            return []
        dropped: list[_Entry] = []
        others = (entry for entry in self._entries.values() if entry is not replaced)
        worst_first = sorted((*others, new), key=lambda entry: (entry.priority, -entry.arrival))
        for entry in worst_first:
            if entry is new:
                raise _of_limit()
            dropped.append(entry)
            excess_count -= 1
            excess_bytes -= len(entry.raw)
            if excess_count <= 0 and excess_bytes <= 0:
                break
        return dropped

    def _check_again(self, block: NextBlock) -> None:
        """Remove entries that have become invalid and update the status of the others.

        Entries whose circumstances are unchanged are not checked again. This keeps a full pool
        fast.
        """
        for entry in tuple(self._entries.values()):
            now = block.circumstances(entry.account, entry.era)
            if now == entry.circumstances:
                continue
            try:
                block.check(entry.raw)
            except (UndecodableExtrinsic, InvalidTransaction):
                self._remove(entry)
                self._report(entry.hash, "invalid")
            else:
                # `_add` replaces the entry with the same hash.
                self._add(replace(entry, circumstances=now))
        self._sort_out(block, dict.fromkeys(self._by_account))

    def _add(self, entry: _Entry) -> None:
        """Add an entry to the indices, or replace the entry with its hash."""
        known = self._entries.get(entry.hash)
        self._bytes += len(entry.raw) - (0 if known is None else len(known.raw))
        self._entries[entry.hash] = entry
        self._by_account.setdefault(entry.account, {})[entry.nonce] = entry

    def _remove(self, entry: _Entry) -> None:
        """Remove an entry from all indices."""
        del self._entries[entry.hash]
        self._bytes -= len(entry.raw)
        self._ready.pop(entry.hash, None)
        by_nonce = self._by_account[entry.account]
        del by_nonce[entry.nonce]
        if not by_nonce:
            del self._by_account[entry.account]

    def _sort_out(
        self, block: NextBlock, accounts: Iterable[AccountId], fresh: Hash | None = None
    ) -> None:
        """Update which extrinsics of these accounts are ready and which are future.

        A change of status is reported. `fresh` is a new extrinsic, whose first status is always
        reported.
        """
        for account in accounts:
            expected = block.nonce(account)
            for nonce, entry in sorted(self._by_account.get(account, {}).items()):
                was_ready = entry.hash in self._ready
                is_ready = nonce == expected
                if is_ready:
                    expected += 1
                    self._ready[entry.hash] = None
                else:
                    self._ready.pop(entry.hash, None)
                if is_ready != was_ready or entry.hash == fresh:
                    self._report(entry.hash, "ready" if is_ready else "future")

    def _report(self, name: Hash, kind: Kind, by: Hash | None = None) -> None:
        self._changes.append(PoolChange(name, kind, by))

    def _in_order(self) -> Iterator[_Entry]:
        """Yield ready entries by priority and arrival, with the nonces of each account in order.

        This merges one queue per account with a heap that holds the first entry of each queue.
        """
        queues: list[Iterator[_Entry]] = []
        heads: list[tuple[int, int, int, _Entry]] = []
        for by_nonce in self._by_account.values():
            ready = [entry for _, entry in sorted(by_nonce.items()) if entry.hash in self._ready]
            queue = iter(ready)
            first = next(queue, None)
            if first is not None:
                # Arrivals are unique, so that the comparison of two tuples never reaches the
                # entries.
                heads.append((-first.priority, first.arrival, len(queues), first))
                queues.append(queue)
        heapify(heads)
        while heads:
            *_, index, entry = heappop(heads)
            yield entry
            following = next(queues[index], None)
            if following is not None:
                heappush(heads, (-following.priority, following.arrival, index, following))

"""The invariants between blocks: rows derived from an entry agree with the child trie.

Limits are not among them, because they hold for writes only.
"""

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.pubsub import KEY_LENGTH
from pubsub_emulator.primitives.types import AccountId, ParaId
from pubsub_emulator.runtime.balances import HOLDS
from pubsub_emulator.runtime.framework.hooks import StateError
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import storage as items
from pubsub_emulator.runtime.pallet_pubsub.config import PALLET, Config, TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.registry import PUBLISHER_DEPOSIT
from pubsub_emulator.runtime.rules import RuleFailed, Rules

Lifetimes = dict[tuple[ParaId, bytes], tuple[int, int]]


def try_state(config: Config, storage: Storage) -> None:
    """Raise `StateError` for the first invariant that is broken."""
    _try_registrations(storage)
    finite: Lifetimes = {}
    for para, count in items.PublishedKeys.items(storage):
        if not config.is_system(para) and config.rules.may_publish is None:
            registered = items.RegisteredPublishers.contains(storage, para)
            _ensure(registered, f"publisher {para} has data and no registration")
        _try_publisher(config.rules, storage, para, count, finite)
    _try_orphans(storage)
    _try_lifetimes(config, storage, finite)


def _ensure(condition: bool, fault: str) -> None:
    if not condition:
        raise StateError(f"{PALLET}: {fault}")


def _try_registrations(storage: Storage) -> None:
    """Check the registrations and their deposits (PS-12).

    The counter must be the number of registrations, and an account's hold the sum of its deposits.
    """
    registered = 0
    deposits: dict[AccountId, int] = {}
    for _, info in items.RegisteredPublishers.items(storage):
        registered += 1
        if info.deposit:
            deposits[info.manager] = deposits.get(info.manager, 0) + info.deposit
    counted = items.CounterForRegisteredPublishers.get(storage)
    _ensure(counted == registered, f"{registered} registrations are counted as {counted}")
    held: dict[AccountId, int] = {}
    for account, holds_of_account in HOLDS.items(storage):
        for hold in holds_of_account:
            if hold.id == PUBLISHER_DEPOSIT:
                held[account] = hold.amount
    for account in [*deposits, *held]:
        deposited = deposits.get(account, 0)
        amount = held.get(account, 0)
        _ensure(
            deposited == amount, f"{amount} is held of {account.hex()} for deposits of {deposited}"
        )


def _try_publisher(
    rules: Rules, storage: Storage, para: ParaId, count: int, finite: Lifetimes
) -> None:
    """Check that count and size are those of the child trie.

    The lifetimes of its finite entries are added to `finite`.
    """
    keys = size = 0
    child, (prefix,) = rules.placed(para, (b"",))
    for placed, raw in storage.child_iter(child, prefix):
        key = placed.removeprefix(prefix)
        _ensure(len(key) == KEY_LENGTH, f"publisher {para} stores a key of {len(key)} bytes")
        try:
            entry = rules.read(raw)
        except (ScaleError, RuleFailed) as error:
            raise StateError(
                f"{PALLET}: publisher {para} stores no entry under {key.hex()}: {error}"
            ) from error
        keys += 1
        size += KEY_LENGTH + len(entry.value)
        if entry.ttl:
            finite[para, key] = (entry.ttl, entry.when_inserted)
    _ensure(
        keys == count and keys > 0, f"publisher {para} stores {keys} keys and {count} are counted"
    )
    counted = items.TotalStorageSize.get(storage, para)
    _ensure(size == counted, f"publisher {para} stores {size} bytes and {counted} are counted")


def _try_orphans(storage: Storage) -> None:
    """Check that publishers without keys have no counter, mark or child trie.

    Uncommitted child tries are not checked.
    """
    for name, item in (("a size", items.TotalStorageSize), ("a lap mark", items.TtlLapMark)):
        for para in item.keys(storage):
            _ensure(
                items.PublishedKeys.contains(storage, para),
                f"publisher {para} has {name} and no keys",
            )
    for child in storage.state.children:
        if (
            child.startswith(b"pubsub")
            and len(child) == 10
            and storage.child_root(child) is not None
        ):
            para = ParaId(int.from_bytes(child[6:], "little"))
            _ensure(
                items.PublishedKeys.contains(storage, para),
                f"publisher {para} has a child trie and no keys",
            )


def _try_lifetimes(config: Config, storage: Storage, finite: Lifetimes) -> None:
    """Check the TTL rows and the expiry index.

    Exactly the finite entries must have a TTL row, and an index row if the policy has the index.
    """
    rows: Lifetimes = {(para, key): lifetime for para, key, lifetime in items.TtlData.rows(storage)}
    for place in [*finite, *rows]:
        lifetime = finite.get(place)
        row = rows.get(place)
        _ensure(
            lifetime == row,
            f"entry {place[1].hex()} of publisher {place[0]} lives {lifetime},"
            f" its TTL row says {row}",
        )
    index = [(expiry, entry) for expiry, entry, _ in items.ExpiryIndex.rows(storage)]
    expected = []
    if config.ttl_policy is TtlPolicy.EXPIRY_INDEX:
        expected = [(ttl + when_inserted, place) for place, (ttl, when_inserted) in finite.items()]
    _ensure(
        sorted(index) == sorted(expected),
        f"the expiry index has {len(index)} rows for {len(expected)} entries",
    )

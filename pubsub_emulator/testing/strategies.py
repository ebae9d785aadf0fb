"""Hypothesis strategies for keys, values, lifetimes, histories, networks and cheats.

They can be combined, mapped and filtered as any other. They shrink towards simple examples: one publisher with one key,
an empty value that never expires, honest collators, no unnecessary actions.

    @given(st.data())
    def test_what_arrives_is_what_was_published(data):
        setup = data.draw(networks())
        steps = play(setup.network(), data.draw(histories_of(setup)))

Where the network is given, fork it, `pubsub_base.fork()`: a test with `@given` runs many times, its fixtures once.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from hypothesis import strategies as st

from pubsub_emulator.collator.cheats import for_any_chain
from pubsub_emulator.emulator.network.parachain import Pace
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import U32_MAX, PubsubKey
from pubsub_emulator.testing.histories import Action, Delete, Go, History, Publish, SendDownward
from pubsub_emulator.testing.setups import HONEST, Collators, NetworkSetup, SubscriberSetup

NAMED_KEYS: Final = tuple(key_from_data(b"key %d" % at) for at in range(8))
"""Few, so that histories write the same key again."""

_STARTS: Final = (b"", b"\x01", b"\x10", b"\x11")
_ENDS: Final = (b"\x01", b"\x10")
CLOSE_KEYS: Final = (
    *(PubsubKey(start + bytes(32 - len(start))) for start in _STARTS),
    *(PubsubKey(bytes(31) + end) for end in _ENDS),
)
"""Raw ones that share a prefix as short or as long as there is, and differ in a high or a low nibble."""

PUBLISHERS: Final = (1000, 1001, 2000, 2001)
"""Two system parachains, and two that have to register."""

SUBSCRIBERS: Final = (3000, 3001, 3002)


def keys() -> st.SearchStrategy[PubsubKey]:
    """Keys: named ones; some that share long prefixes or differ in one nibble; any 32 bytes."""
    return st.sampled_from((*NAMED_KEYS, *CLOSE_KEYS)) | st.binary(min_size=32, max_size=32).map(PubsubKey)


def key_sets(max_size: int = 6) -> st.SearchStrategy[tuple[PubsubKey, ...]]:
    """Distinct keys, ascending, at least one."""
    return st.lists(keys(), min_size=1, max_size=max_size, unique=True).map(lambda found: tuple(sorted(found)))


def values(max_size: int = 2048) -> st.SearchStrategy[bytes]:
    """One byte repeated: lengths about which an entry moves out of its leaf or reaches a limit, and some between.

    Two choices, not one for each byte: histories of many values still shrink.
    """
    sizes = [size for size in (0, 1, 8, 16, 20, 22, 23, 24, 31, 32, 33, 64, 200, 600) if size < max_size]
    return st.builds(lambda size, fill: bytes((fill,)) * size, st.sampled_from((*sizes, max_size)), st.integers(0, 255))


def ttls() -> st.SearchStrategy[int]:
    """Lifetimes in relay blocks: no expiry (0), a few blocks, and the largest possible ones."""
    return st.sampled_from((0, 1, 2, 3, 5, 8, 12, U32_MAX - 1, U32_MAX))


def _or_keys(of: st.SearchStrategy[PubsubKey] | None) -> st.SearchStrategy[PubsubKey]:
    return keys() if of is None else of


def publishes(
    publishers: Sequence[int] = PUBLISHERS, of: st.SearchStrategy[PubsubKey] | None = None, max_value: int = 2048
) -> st.SearchStrategy[Publish]:
    """One key that one of `publishers` publishes; `of` draws the keys."""
    return st.builds(Publish, st.sampled_from(publishers), _or_keys(of), values(max_value), ttls())


def deletes(
    publishers: Sequence[int] = PUBLISHERS, of: st.SearchStrategy[PubsubKey] | None = None
) -> st.SearchStrategy[Delete]:
    """Some keys of one publisher, which may have them or not, and may be named twice."""
    listed = st.lists(_or_keys(of), min_size=1, max_size=3).map(tuple)
    return st.builds(Delete, st.sampled_from(publishers), listed)


def histories(
    publishers: Sequence[int] = PUBLISHERS,
    of: st.SearchStrategy[PubsubKey] | None = None,
    subscribers: Sequence[int] = (),
    max_actions: int = 20,
    settle: int = 4,
) -> st.SearchStrategy[History]:
    """Publishes, deletions, messages to `subscribers`, and blocks between them; `settle` blocks at the end."""
    found: list[st.SearchStrategy[Action]] = [
        publishes(publishers, of),
        st.builds(Go, st.integers(1, 3)),
        deletes(publishers, of),
    ]
    if subscribers:
        found.append(st.builds(SendDownward, st.sampled_from(subscribers), st.binary(max_size=64)))
    actions = st.lists(st.one_of(found), max_size=max_actions)
    return actions.map(lambda done: (*done, Go(settle)) if settle else tuple(done))


def histories_of(setup: NetworkSetup, max_actions: int = 20, settle: int = 4) -> st.SearchStrategy[History]:
    """Histories that fit a network: its publishers write the keys that somebody subscribes, and others."""
    items = (subscriber.items for subscriber in setup.subscribers)
    wanted = sorted({key for each in items for listed in each.values() for key in listed})
    subscribers = [subscriber.para for subscriber in setup.subscribers]
    return histories(setup.publishers, st.sampled_from(wanted) | keys(), subscribers, max_actions, settle)


def cheats(names: Iterable[str] = ()) -> st.SearchStrategy[str]:
    """Names of strategies of dishonest collators, of these or of all there are."""
    return st.sampled_from(tuple(names) or tuple(for_any_chain()))


def collator_sets(max_size: int = 4, of: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Collators]:
    """Collators of one parachain, at least one of them honest; each cheats by up to two strategies, drawn by `of`."""
    names = cheats() if of is None else of
    strategies = st.lists(names, max_size=2, unique=True).map(tuple)
    others = st.lists(strategies, max_size=max_size - 1)
    return st.builds(lambda rest, at: (*rest[:at], (), *rest[at:]), others, st.integers(0, max_size - 1))


def items(
    publishers: Sequence[int] = PUBLISHERS, of: st.SearchStrategy[tuple[PubsubKey, ...]] | None = None
) -> st.SearchStrategy[dict[int, tuple[PubsubKey, ...]]]:
    """The keys that a parachain subscribes to, by publisher; at least one publisher."""
    return st.dictionaries(st.sampled_from(publishers), key_sets() if of is None else of, min_size=1, max_size=3)


def paces() -> st.SearchStrategy[Pace]:
    """When a parachain builds: at every relay block, several at once, now and then, or on old relay parents."""
    return st.builds(Pace, st.integers(1, 2), st.integers(1, 3), st.integers(0, 2))


def networks(
    publishers: Sequence[int] = PUBLISHERS,
    subscribers: Sequence[int] = SUBSCRIBERS,
    collators: st.SearchStrategy[Collators] | None = None,
) -> st.SearchStrategy[NetworkSetup]:
    """Small networks at genesis, every cache policy and pace among them; honest ones unless `collators` says else."""
    reading = st.builds(
        SubscriberSetup,
        st.sampled_from(subscribers),
        items(publishers),
        st.just(HONEST) if collators is None else collators,
        st.sampled_from(("slots", "nodes", "none")),
        paces(),
    )
    found = st.lists(reading, min_size=1, max_size=2, unique_by=lambda each: each.para)
    unread = st.lists(st.sampled_from(publishers), max_size=1)

    def setup(subscribers: list[SubscriberSetup], unread: list[int]) -> NetworkSetup:
        publishing = {*unread, *(para for subscriber in subscribers for para in subscriber.items)}
        return NetworkSetup(tuple(sorted(publishing)), tuple(subscribers))

    return st.builds(setup, found, unread)

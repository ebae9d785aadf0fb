"""Hypothesis strategies for keys, values, lifetimes, histories, networks and cheats.

They can be combined, mapped and filtered like any others. They shrink towards simple examples: one
publisher with one key, an empty value that never expires, honest collators, no unnecessary actions.

    @given(st.data())
    def test_what_arrives_is_what_was_published(data):
        setup = data.draw(networks())
        steps = play(setup.network(), data.draw(histories_of(setup)))

If a fixture provides the network, fork it with `pubsub_base.fork()`: a test with `@given` runs many
times, but its fixtures only once.
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
"""A few keys, so that histories write the same key several times."""

_STARTS: Final = (b"", b"\x01", b"\x10", b"\x11")
_ENDS: Final = (b"\x01", b"\x10")
CLOSE_KEYS: Final = (
    *(PubsubKey(start + bytes(32 - len(start))) for start in _STARTS),
    *(PubsubKey(bytes(31) + end) for end in _ENDS),
)
"""Keys that share prefixes of extreme lengths, and differ in a high or a low nibble."""

PUBLISHERS: Final = (1000, 1001, 2000, 2001)
"""Two system parachains, and two that have to register."""

SUBSCRIBERS: Final = (3000, 3001, 3002)


def keys() -> st.SearchStrategy[PubsubKey]:
    """Return a strategy for keys.

    They are named keys, keys that share long prefixes or differ in one nibble, and any 32 bytes.
    """
    return st.sampled_from((*NAMED_KEYS, *CLOSE_KEYS)) | st.binary(min_size=32, max_size=32).map(
        PubsubKey
    )


def key_sets(max_size: int = 6) -> st.SearchStrategy[tuple[PubsubKey, ...]]:
    """Return a strategy for at least one distinct key, in ascending order."""
    return st.lists(keys(), min_size=1, max_size=max_size, unique=True).map(
        lambda drawn: tuple(sorted(drawn))
    )


def values(max_size: int = 2048) -> st.SearchStrategy[bytes]:
    """Return a strategy for values, which repeat one byte.

    Many lengths are close to those at which an entry moves out of its leaf or reaches a limit. A
    value needs only two choices instead of one for each byte, so that histories of many values
    still shrink.
    """
    sizes = [
        size for size in (0, 1, 8, 16, 20, 22, 23, 24, 31, 32, 33, 64, 200, 600) if size < max_size
    ]
    return st.builds(
        lambda size, fill: bytes((fill,)) * size,
        st.sampled_from((*sizes, max_size)),
        st.integers(0, 255),
    )


def ttls() -> st.SearchStrategy[int]:
    """Return a strategy for lifetimes in relay blocks: unlimited (0), a few, or very many."""
    return st.sampled_from((0, 1, 2, 3, 5, 8, 12, U32_MAX - 1, U32_MAX))


def _or_keys(of: st.SearchStrategy[PubsubKey] | None) -> st.SearchStrategy[PubsubKey]:
    return keys() if of is None else of


def publishes(
    publishers: Sequence[int] = PUBLISHERS,
    of: st.SearchStrategy[PubsubKey] | None = None,
    max_value: int = 2048,
) -> st.SearchStrategy[Publish]:
    """Return a strategy for a key that one of `publishers` publishes. `of` draws the keys."""
    return st.builds(Publish, st.sampled_from(publishers), _or_keys(of), values(max_value), ttls())


def deletes(
    publishers: Sequence[int] = PUBLISHERS, of: st.SearchStrategy[PubsubKey] | None = None
) -> st.SearchStrategy[Delete]:
    """Return a strategy for deletions of some keys of one publisher.

    The keys may be missing, and may be named twice.
    """
    key_lists = st.lists(_or_keys(of), min_size=1, max_size=3).map(tuple)
    return st.builds(Delete, st.sampled_from(publishers), key_lists)


def histories(
    publishers: Sequence[int] = PUBLISHERS,
    of: st.SearchStrategy[PubsubKey] | None = None,
    subscribers: Sequence[int] = (),
    max_actions: int = 20,
    settle: int = 4,
) -> st.SearchStrategy[History]:
    """Return a strategy for histories.

    They have publishes, deletions, messages to `subscribers`, and blocks between them. They end
    with `settle` blocks.
    """
    choices: list[st.SearchStrategy[Action]] = [
        publishes(publishers, of),
        st.builds(Go, st.integers(1, 3)),
        deletes(publishers, of),
    ]
    if subscribers:
        choices.append(
            st.builds(SendDownward, st.sampled_from(subscribers), st.binary(max_size=64))
        )
    actions = st.lists(st.one_of(choices), max_size=max_actions)
    return actions.map(lambda drawn: (*drawn, Go(settle)) if settle else tuple(drawn))


def histories_of(
    setup: NetworkSetup, max_actions: int = 20, settle: int = 4
) -> st.SearchStrategy[History]:
    """Return a strategy for histories that fit a network.

    Its publishers write keys that are subscribed to, and other keys.
    """
    subscribed: set[PubsubKey] = set()
    for subscriber in setup.subscribers:
        subscribed.update(*subscriber.items.values())
    subscribed_keys = sorted(subscribed)
    subscribers = [subscriber.para for subscriber in setup.subscribers]
    return histories(
        setup.publishers,
        st.sampled_from(subscribed_keys) | keys(),
        subscribers,
        max_actions=max_actions,
        settle=settle,
    )


def cheats(names: Iterable[str] = ()) -> st.SearchStrategy[str]:
    """Return a strategy for names of cheats: those in `names`, or all."""
    return st.sampled_from(tuple(names) or tuple(for_any_chain()))


def collator_sets(
    max_size: int = 4, of: st.SearchStrategy[str] | None = None
) -> st.SearchStrategy[Collators]:
    """Return a strategy for the collators of one parachain, at least one of which is honest.

    Each of the others cheats by up to two strategies, which `of` draws.
    """
    names = cheats() if of is None else of
    strategies = st.lists(names, max_size=2, unique=True).map(tuple)
    others = st.lists(strategies, max_size=max_size - 1)
    return st.builds(
        lambda dishonest, index: (*dishonest[:index], (), *dishonest[index:]),
        others,
        st.integers(0, max_size - 1),
    )


def items(
    publishers: Sequence[int] = PUBLISHERS,
    of: st.SearchStrategy[tuple[PubsubKey, ...]] | None = None,
) -> st.SearchStrategy[dict[int, tuple[PubsubKey, ...]]]:
    """Return a strategy for the keys that a parachain subscribes to, by publisher.

    There is at least one publisher.
    """
    return st.dictionaries(
        st.sampled_from(publishers), key_sets() if of is None else of, min_size=1, max_size=3
    )


def paces() -> st.SearchStrategy[Pace]:
    """Return a strategy for paces: every relay block, several blocks, pauses, old relay parents."""
    return st.builds(Pace, st.integers(1, 2), st.integers(1, 3), st.integers(0, 2))


def networks(
    publishers: Sequence[int] = PUBLISHERS,
    subscribers: Sequence[int] = SUBSCRIBERS,
    collators: st.SearchStrategy[Collators] | None = None,
) -> st.SearchStrategy[NetworkSetup]:
    """Return a strategy for small networks at genesis with all cache policies and paces.

    Collators are honest unless `collators` draws others.
    """
    reading = st.builds(
        SubscriberSetup,
        st.sampled_from(subscribers),
        items(publishers),
        st.just(HONEST) if collators is None else collators,
        st.sampled_from(("slots", "nodes", "none")),
        paces(),
    )
    drawn_subscribers = st.lists(
        reading, min_size=1, max_size=2, unique_by=lambda subscriber: subscriber.para
    )
    unread = st.lists(st.sampled_from(publishers), max_size=1)

    def setup(subscribers: list[SubscriberSetup], unread: list[int]) -> NetworkSetup:
        publishing = set(unread)
        for subscriber in subscribers:
            publishing.update(subscriber.items)
        return NetworkSetup(tuple(sorted(publishing)), tuple(subscribers))

    return st.builds(setup, drawn_subscribers, unread)

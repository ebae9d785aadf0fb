"""The promises of the oracle, tested on a whole network of feeds, collators and the pallet."""

import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from market import CHAIN, FEEDS, PAIR, Market, market, quote

from pubsub_emulator import Cheats, Networks, ProofSizes, ProofSnapshot, TimedOut, key_from_data
from pubsub_emulator.testing.strategies import ttls


def busy(networks: Networks, every: int, scans: int) -> Market:
    """Return a market in which a feed has also quoted thirty other pairs.

    The relay chain has to check all of their entries for expiry.
    """
    traded = Market(networks.build(market(every, scans), "busy market").fork())
    for number in range(30):
        traded.network.publish(
            FEEDS[0], key_from_data(b"another pair %d" % number), quote(1.0), ttl=1000
        )
    return traded


def test_the_price_is_the_median_of_the_feeds(opened: Market) -> None:
    assert opened.price() == 7.1


def test_one_feed_that_lies_does_not_move_the_price_beyond_the_others(opened: Market) -> None:
    opened.quote(FEEDS[2], 1000.0)
    opened.network.step(3)
    assert opened.price() == 7.2


@pytest.mark.parametrize("scans", [500, 1])
def test_a_quote_counts_for_as_long_as_its_feed_stands_by_it(
    pubsub_networks: Networks, scans: int
) -> None:
    """The result is the same if the relay chain is slow to delete expired entries.

    With `scans=1` it checks only one of many entries in a block.
    """
    traded = busy(pubsub_networks, every=1, scans=scans)
    for feed in FEEDS:
        traded.quote(feed, 6.0, ttl=0 if feed == FEEDS[0] else 4)
    traded.network.step(3)
    assert traded.price() == 6.0
    traded.network.step(4)
    assert traded.price() is None, "one feed is left, and one is too few"


def test_a_quote_that_comes_too_late_is_ignored(pubsub_networks: Networks) -> None:
    """The oracle builds rarely and the relay chain is slow, so an expired quote is delivered."""
    late = busy(pubsub_networks, every=6, scans=1)
    late.quote(FEEDS[0], 5.0, ttl=2)
    late.quote(FEEDS[1], 7.0)
    late.quote(FEEDS[2], 8.0)
    delivered = late.network.step(6)[-1].deliveries(CHAIN)
    assert [delivery.publisher for delivery in delivered if delivery.ttl_state == TimedOut()] == [
        FEEDS[0]
    ]
    assert late.price() == 7.0


def test_a_quote_that_is_taken_back_no_longer_counts(opened: Market) -> None:
    opened.network.delete(FEEDS[2], [PAIR])
    opened.network.step(2)
    assert opened.price() == 7.0


@pytest.mark.parametrize("value", [b"", b"7.42", bytes(16)])
def test_what_is_no_quote_leaves_the_last_one_standing(opened: Market, value: bytes) -> None:
    opened.network.publish(FEEDS[2], PAIR, value)
    [delivery] = opened.network.step(3)[-1].deliveries(CHAIN)
    assert delivery.failed
    assert opened.price() == 7.1


def test_a_collator_cannot_keep_a_price_from_the_chain(
    opened: Market, pubsub_cheats: Cheats
) -> None:
    opened.quote(FEEDS[0], 9.0)
    opened.quote(FEEDS[1], 9.1)
    opened.network.step(2)
    for cheat in ("withheld-delivery", "omit-publisher", "as-if-unchanged"):
        assert pubsub_cheats.attempt(CHAIN, cheat).refusal is not None, cheat
    pubsub_cheats.bribe(CHAIN, 0, "withheld-delivery")
    opened.network.step(2)
    assert opened.price() == 9.0


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(FEEDS), st.integers(1, 50), ttls()), max_size=8))
def test_the_price_lies_between_quotes_that_still_stand(
    pubsub_networks: Networks, quotes: list[tuple[int, int, int]]
) -> None:
    traded = Market(pubsub_networks.build(market()).fork())
    standing: dict[int, tuple[int, int]] = {}
    for feed, price, ttl in quotes:
        traded.quote(feed, price, ttl)
        published = traded.network.step(2)[-1].number
        standing[feed] = (price, published + ttl if ttl else oracle.FOREVER)
    traded.network.step()
    now = traded.network.number - 1
    fresh = sorted(price for price, until in standing.values() if until > now)
    assert traded.price() == (
        fresh[(len(fresh) - 1) // 2] if len(fresh) >= oracle.MIN_QUOTES else None
    )


def test_twenty_blocks_of_prices_stay_as_cheap_to_prove_as_they_were(
    opened: Market, proof_snapshot: ProofSnapshot
) -> None:
    sizes = ProofSizes()
    opened.network.observe(sizes)
    for block in range(20):
        opened.quote(FEEDS[block % 3], 7 + block / 100)
        opened.network.step()
    proof_snapshot(sizes, tolerance="5%")

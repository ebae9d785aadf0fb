"""A pallet of a fictitious parachain: the median of fresh prices from several publishers.

A quote is a u128, little endian, in millionths, published under `key_from_data(b"DOT/USD")` by each
feed. The lifetime of the entry says how long the feed stands by its quote. Nothing calls the pallet
when time passes. The pallet therefore stores the relay block until which a quote is valid, and
ignores older ones whenever it is asked.
"""

from dataclasses import dataclass
from statistics import median_low
from typing import Final

from pubsub_emulator import (
    LAST_RELAY_PARENT,
    U32_MAX,
    Codec,
    HandlerContext,
    HandlerError,
    Pallet,
    ParaId,
    PubsubKey,
    Reader,
    Storage,
    StorageDoubleMap,
    TimedOut,
    TtlState,
    Twox64Concat,
    ValidFor,
    Weight,
    para_id,
    pubsub_key,
    register_handler,
)
from pubsub_emulator.primitives import scale

HANDLER: Final = "oracle"
FOREVER: Final = U32_MAX
QUOTE_BYTES: Final = 16
MIN_QUOTES: Final = 2
"""Of one feed alone nobody should live."""

_WRITE: Final = Weight(25_000_000, 0)


@dataclass(frozen=True, slots=True)
class Quote:
    """A price in millionths, good for relay parents below `until`."""

    price: int
    until: int


def _encode(quote: Quote) -> bytes:
    return quote.price.to_bytes(QUOTE_BYTES, "little") + scale.u32.encode(quote.until)


def _read(reader: Reader) -> Quote:
    return Quote(reader.uint(QUOTE_BYTES), reader.uint(4))


PALLET: Final = Pallet("Oracle", 200, "pallet_oracle")
QUOTES: Final = StorageDoubleMap(
    PALLET,
    "Quotes",
    "The newest quote for a pair by each feed.",
    Twox64Concat,
    pubsub_key,
    Twox64Concat,
    para_id,
    Codec("Quote", _encode, _read),
)


class Oracle:
    """The handler: keeps fresh quotes, removes stale and deleted ones, and refuses other bytes."""

    def on_data_updated(
        self,
        context: HandlerContext,
        publisher: ParaId,
        key: PubsubKey,
        value: bytes,
        ttl_state: TtlState,
    ) -> None:
        """Take a quote, unless its time was over before it came."""
        context.consume(_WRITE)
        price = int.from_bytes(value, "little")
        if len(value) != QUOTE_BYTES or not price:
            raise HandlerError(f"not a quote: 0x{value.hex()}")
        if isinstance(ttl_state, TimedOut):
            QUOTES.remove(context.storage, key, publisher)
            return
        now = LAST_RELAY_PARENT.get(context.storage) or 0
        until = now + ttl_state.blocks if isinstance(ttl_state, ValidFor) else FOREVER
        QUOTES.insert(context.storage, key, publisher, Quote(price, min(until, FOREVER)))

    def on_data_removed(self, context: HandlerContext, publisher: ParaId, key: PubsubKey) -> None:
        """Remove a quote that its feed deleted or that expired on the relay chain."""
        context.consume(_WRITE)
        QUOTES.remove(context.storage, key, publisher)


register_handler(HANDLER, Oracle())


def fresh_quotes(storage: Storage, pair: PubsubKey) -> dict[ParaId, int]:
    """The prices of fresh quotes, by feed."""
    now = LAST_RELAY_PARENT.get(storage) or 0
    return {feed: quote.price for feed, quote in QUOTES.items(storage, pair) if quote.until > now}


def price(storage: Storage, pair: PubsubKey) -> int | None:
    """Return the median of the fresh quotes, or `None` if there are too few.

    Of two quotes in the middle, the lower one is returned.
    """
    prices = fresh_quotes(storage, pair).values()
    return median_low(prices) if len(prices) >= MIN_QUOTES else None

"""The input of a block from the relay chain besides its proof: requested keys, messages, headers.

A candidate may come from anybody, so only the first rows of a list are shown.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from pubsub_emulator.explorer.words import DisplayNames, preview
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.runtime.framework.message_chains import InboundMessages
from pubsub_emulator.runtime.framework.relay_keys import relay_key_name
from pubsub_emulator.runtime.framework.relay_state import RequestedValues

MOST_ROWS: Final = 200
"""The maximum number of rows of a list."""
_PREVIEWED: Final = 16
"""The number of bytes of a value or message that are shown."""

Row = list[str | int]


def requested_rows(requested: RequestedValues) -> list[Row]:
    """Return the requested keys that were read: name, and value or `absent`."""
    return [
        [relay_key_name(key), "absent" if value is None else preview(value, _PREVIEWED)]
        for key, value in islice(requested.items(), MOST_ROWS)
    ]


def message_rows(messages: InboundMessages, names: DisplayNames) -> list[Row]:
    """Return rows of messages: sender, relay block, `in full` or `as a hash`, size, beginning.

    If the inherent only has the hash of a message (UP-8), the size is -1.
    """
    return list(islice(_messages(messages, names), MOST_ROWS))


def _messages(messages: InboundMessages, names: DisplayNames) -> Iterator[Row]:
    """Yield a row for each message: sender, relay block, form, size, preview.

    The size of a message that is only known as a hash is -1.
    """
    for downward in messages.downward:
        yield _full("relay chain", downward.sent_at, downward.msg)
    for hashed in messages.hashed_downward:
        yield ["relay chain", hashed.sent_at, "as a hash", -1, f"0x{hashed.msg_hash.hex()}"]
    for sender, sent in messages.horizontal:
        for horizontal in sent:
            yield _full(names.chain(sender), horizontal.sent_at, horizontal.data)
    for sender, queue in messages.hashed_horizontal:
        for message in queue:
            yield [
                names.chain(sender),
                message.sent_at,
                "as a hash",
                -1,
                f"0x{message.msg_hash.hex()}",
            ]


def _full(sender: str, sent_at: int, data: bytes) -> Row:
    return [sender, sent_at, "in full", len(data), preview(data, _PREVIEWED)]


def message_count(messages: InboundMessages) -> int:
    """Return the number of messages, in full and hashed."""
    full = len(messages.downward) + sum(len(sent) for _, sent in messages.horizontal)
    return full + messages.hashed_count


def descendant_rows(headers: Sequence[Header]) -> list[Row]:
    """Return the headers of the relay parent and its descendants: number, hash, storage root."""
    return [
        [header.number, f"0x{header.hash().hex()}", f"0x{header.state_root.hex()}"]
        for header in headers[:MOST_ROWS]
    ]

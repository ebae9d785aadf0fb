"""The input of a block beside its proof in rows: what they say, and how many there are at most."""

from pubsub_emulator.explorer.inherent import (
    MOST_ROWS,
    descendant_rows,
    message_count,
    message_rows,
    requested_rows,
)
from pubsub_emulator.explorer.words import DisplayNames
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import (
    EMPTY_TRIE_ROOT,
    Hash,
    ParaId,
    RelayBlockNumber,
)
from pubsub_emulator.runtime.framework.message_chains import (
    HashedMessage,
    InboundDownwardMessage,
    InboundHrmpMessage,
    InboundMessages,
)
from pubsub_emulator.runtime.framework.relay_keys import relay_key

AT = RelayBlockNumber(7)
NAMES = DisplayNames({ParaId(2000): "prices"})


def test_messages_say_who_sent_them_and_whether_they_are_there_in_full() -> None:
    messages = InboundMessages(
        downward=(InboundDownwardMessage(AT, b"order"),),
        horizontal=((ParaId(2000), (InboundHrmpMessage(AT, bytes(40)),)),),
        hashed_downward=(HashedMessage(AT, Hash(b"\x01" * 32)),),
        hashed_horizontal=((ParaId(2000), (HashedMessage(AT, Hash(b"\x02" * 32)),)),),
    )
    assert message_rows(messages, NAMES) == [
        ["relay chain", 7, "in full", 5, '"order"'],
        ["relay chain", 7, "as a hash", -1, f"0x{'01' * 32}"],
        ["2000 prices", 7, "in full", 40, f"0x{'00' * 16}…"],
        ["2000 prices", 7, "as a hash", -1, f"0x{'02' * 32}"],
    ]
    assert message_count(messages) == 4


def test_requested_keys_have_a_value_or_are_absent() -> None:
    read = {relay_key("Mmr.RootHash"): b"\xff" * 20, relay_key("System.Number"): None}
    assert requested_rows(read) == [
        ["Mmr.RootHash", f"0x{'ff' * 16}…"],
        ["System.Number", "absent"],
    ]


def test_of_endless_lists_the_first_rows_are_shown() -> None:
    many = MOST_ROWS + 1
    messages = InboundMessages(downward=(InboundDownwardMessage(AT, bytes(9_999)),) * many)
    rows = message_rows(messages, NAMES)
    assert len(rows) == MOST_ROWS
    assert max(len(str(row)) for row in rows) < 120
    assert message_count(messages) == many
    header = Header(EMPTY_TRIE_ROOT, 3, EMPTY_TRIE_ROOT, EMPTY_TRIE_ROOT)
    assert len(descendant_rows([header] * many)) == MOST_ROWS
    keys = [relay_key(f"Paras.Heads({para})") for para in range(many)]
    assert len(requested_rows(dict.fromkeys(keys))) == MOST_ROWS

"""Relay keys in words and from words, for requests (UP-2, UP-3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives import storage_keys
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_128_concat
from pubsub_emulator.primitives.ss58 import encode_address
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.relay_keys import (
    relay_key,
    relay_key_name,
    relay_key_text,
)
from pubsub_emulator.runtime.framework.relay_request import (
    MAX_STORAGE_KEY,
    ChildKey,
    RelayStorageKey,
    TopKey,
)

_ACCOUNT = bytes(range(32))
_KEYS = st.binary(max_size=40)
_ASKED: st.SearchStrategy[RelayStorageKey] = st.one_of(
    st.builds(TopKey, _KEYS), st.builds(ChildKey, _KEYS, _KEYS)
)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Mmr.RootHash", TopKey(storage_keys.item_prefix("Mmr", "RootHash"))),
        ("Babe.Randomness", TopKey(storage_keys.item_prefix("Babe", "Randomness"))),
        ("Paras.Heads(2001)", TopKey(storage_keys.para_head(ParaId(2001)))),
        (
            "Hrmp.HrmpChannels(2000, 2001)",
            TopKey(storage_keys.hrmp_channel(ParaId(2000), ParaId(2001))),
        ),
        (
            f"System.Account({encode_address(_ACCOUNT)})",
            TopKey(storage_keys.item_prefix("System", "Account") + blake2_128_concat(_ACCOUNT)),
        ),
        ("0x0102", TopKey(b"\x01\x02")),
        ("child:crowdloan/0xff", ChildKey(b"crowdloan", b"\xff")),
    ],
)
def test_a_text_names_a_key(text: str, key: RelayStorageKey) -> None:
    assert relay_key(text) == key


@given(_ASKED)
def test_every_key_has_a_text_that_names_it(key: RelayStorageKey) -> None:
    assert relay_key(relay_key_text(key)) == key
    assert relay_key_name(key)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Mmr.RootHash", "Mmr.RootHash"),
        ("Paras.Heads(2001)", "Paras.Heads(2001)"),
        ("child:0x707562737562e8030000/0xff", "child trie 1000, key 0xff"),
        ("child:crowdloan/0xff", "child trie 0x63726f77646c6f616e, key 0xff"),
        (f"System.Account(0x{_ACCOUNT.hex()})", f"System.Account(0x{_ACCOUNT.hex()})"),
    ],
)
def test_known_keys_are_shown_by_name(text: str, name: str) -> None:
    assert relay_key_name(relay_key(text)) == name


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not ''"),
        ("Mmr", "not 'Mmr'"),
        ("0x1", "even number"),
        ("child:0x01", "child:STORAGE_KEY/KEY"),
        ("Paras.Heads(-1)", "below 2\\^32"),
        ("Paras.Heads(4294967296)", "below 2\\^32"),
        ("System.Account(0x01)", "32 bytes, not 1"),
        ("System.Account(Alice)", "System.Account"),
        ("0x" + "00" * (MAX_STORAGE_KEY + 1), f"at most {MAX_STORAGE_KEY}"),
        ("child:" + "a" * (MAX_STORAGE_KEY + 1) + "/b", f"at most {MAX_STORAGE_KEY}"),
    ],
)
def test_other_texts_are_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ScaleError, match=why):
        relay_key(text)

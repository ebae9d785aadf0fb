"""Names of storage keys by Polkadot's metadata, and their names again."""

import pytest
from support.client.chain_values import real_metadata

from pubsub_emulator.client.errors import ClientError
from pubsub_emulator.client.storage_names import LONGEST_NAME, StorageNames
from pubsub_emulator.primitives.hashing import blake2_128, twox64_concat
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.ss58 import decode_address, encode_address
from pubsub_emulator.primitives.storage_keys import hrmp_channel, item_prefix, para_head
from pubsub_emulator.primitives.types import AccountId, ParaId

ALICE = encode_address(AccountId(b"\x21" * 32))


@pytest.fixture(scope="module")
def names() -> StorageNames:
    return StorageNames(real_metadata("polkadot-14"))


def test_names_and_keys_belong_to_each_other(names: StorageNames) -> None:
    account = bytes(decode_address(ALICE))
    for name, key in (
        ("System.Number", item_prefix("System", "Number")),
        ("Babe.CurrentSlot", item_prefix("Babe", "CurrentSlot")),
        ("Paras.Heads(1000)", para_head(ParaId(1000))),
        (
            f"System.Account({ALICE})",
            item_prefix("System", "Account") + blake2_128(account) + account,
        ),
        (
            "System.BlockHash(7)",
            item_prefix("System", "BlockHash") + twox64_concat((7).to_bytes(4, "little")),
        ),
    ):
        assert names.key(name) == key
        assert names.name(key) == name


def test_a_struct_as_key_is_shown_by_its_fields(names: StorageNames) -> None:
    key = hrmp_channel(ParaId(1000), ParaId(2004))
    assert names.name(key) == "Hrmp.HrmpChannels({'sender': 1000, 'recipient': 2004})"


def test_keys_that_are_not_the_chains_have_no_name(names: StorageNames) -> None:
    assert names.name(b"\x11" * 40) is None
    assert names.name(item_prefix("System", "Number") + b"\0") is None
    wrong_hash = bytearray(para_head(ParaId(1000)))
    wrong_hash[33] ^= 1
    shown = names.name(bytes(wrong_hash))
    assert shown == f"Paras.Heads(0x{wrong_hash[32:].hex()})"


def test_plain_keys_need_no_name(names: StorageNames) -> None:
    assert names.key(":code") == b":code"
    assert names.key("0x1234") == unhex("0x1234")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Nope.Number", "no pallet Nope; it has .*System"),
        ("System.Nope", "no storage item System.Nope; it has .*Number"),
        ("Systen.Number", r"no pallet Systen; did you mean System\?"),
        ("Paras.Haeds(1000)", r"no storage item Paras\.Haeds; did you mean Heads\?"),
        ("System.Number(1)", "takes 0 keys, not 1"),
        ("Paras.Heads(-1)", r"Paras\.Heads: -1 is not a value"),
        ("Paras.Heads(True)", "True is not a value"),
        ("System.Account(5)", "5 is not a value"),
        ("System.Account(0x12)", "System.Account: .*has 32 parts, not 1"),
        ("System.Account(xyz)", "System.Account: not an address: 'xyz' is not"),
        ("0xzz", "not hexadecimal"),
        ("System Number", "a key is 0x"),
        ("x" * (LONGEST_NAME + 1), "the limit is 4,096"),
    ],
)
def test_a_name_that_is_wrong_is_one_line(names: StorageNames, name: str, words: str) -> None:
    with pytest.raises(ClientError, match=words) as failed:
        names.key(name)
    assert "\n" not in str(failed.value)

"""Principals, identifiers, hashes, namespaces and messages against vectors."""

from typing import Any

import pytest
from support.icrc_vectors import raw, vectors

from pubsub_emulator.icrc72.errors import ConfigError, IdentifierError, NamespaceError
from pubsub_emulator.icrc72.ic.candid.did import parse_types
from pubsub_emulator.icrc72.ic.candid.json_form import from_json, to_json
from pubsub_emulator.icrc72.ic.errors import CandidError, PrincipalError
from pubsub_emulator.icrc72.ic.principal import Principal, canister_id, self_authenticating, subnet_of
from pubsub_emulator.icrc72.identifiers import from_blob, from_text, to_text
from pubsub_emulator.icrc72.namespaces import check_namespace, check_pattern, matches
from pubsub_emulator.icrc72.services import Codec, codec, interface, type_codec
from pubsub_emulator.icrc72.skip import skip_of
from pubsub_emulator.icrc72.value_hash import value_hash
from pubsub_emulator.icrc72.values import array, nat


@pytest.mark.parametrize("row", vectors("principals"), ids=repr)
def test_ic_2_principals_have_their_text(row: dict[str, Any]) -> None:
    written = row.get("text_in", row.get("text", ""))
    if row.get("error"):
        with pytest.raises(PrincipalError):
            Principal.from_text(written)
        return
    found = Principal.from_text(written)
    assert found == raw(row["bytes"])
    assert found.text == row["text"]
    assert found.kind == row.get("class", found.kind)


@pytest.mark.parametrize("row", vectors("canister_ids"), ids=repr)
def test_ic_3_canister_ids_come_from_the_range_of_their_subnet(row: dict[str, Any]) -> None:
    found = canister_id(row["subnet"], row["index"])
    assert (found, found.text) == (raw(row["bytes"]), row["text"])
    assert subnet_of(found) == row["subnet"]


@pytest.mark.parametrize("row", vectors("self_authenticating"), ids=lambda row: row["text"])
def test_ic_2b_users_are_self_authenticating(row: dict[str, Any]) -> None:
    found = self_authenticating(raw(row["der"]))
    assert (found, found.text, found.kind) == (raw(row["bytes"]), row["text"], "self-authenticating")


@pytest.mark.parametrize("row", vectors("crockford"), ids=repr)
def test_ic_25_identifiers_have_their_text(row: dict[str, Any]) -> None:
    written = row.get("text_in", row.get("text", ""))
    if row.get("error"):
        with pytest.raises(IdentifierError):
            from_text(written)
        return
    assert from_text(written) == int(row["nat"])
    assert to_text(int(row["nat"])) == row["text"]


@pytest.mark.parametrize("row", vectors("blob_ids"), ids=repr)
def test_ic_25_a_blob_id_is_read_big_endian(row: dict[str, Any]) -> None:
    assert from_blob(raw(row["blob"])) == int(row["nat"])
    assert to_text(int(row["nat"])) == row["text"]


ICRC16 = interface("broadcaster").types["ICRC16"]


@pytest.mark.parametrize("row", vectors("value_hash"), ids=lambda row: row["hash"][:10])
def test_ic_21_values_have_their_hash(row: dict[str, Any]) -> None:
    assert value_hash(from_json(ICRC16, row["value"])) == raw(row["hash"])


@pytest.mark.parametrize("row", vectors("candid_icrc16"), ids=lambda row: str(row["value"])[:40])
def test_ic_11_values_of_two_libraries_are_read_and_ours_is_read_back(row: dict[str, Any]) -> None:
    values = type_codec("broadcaster", "ICRC16")
    (found,) = values.decode(raw(row["py"]))
    assert to_json(ICRC16, found) == row["value"]
    assert values.decode(raw(row["js"])) == (found,)
    assert values.decode(values.encode(found)) == (found,)


@pytest.mark.parametrize("row", vectors("candid_messages"), ids=lambda row: row["method"] + row["side"])
def test_ic_11_messages_of_two_libraries_are_read_and_ours_are_read_back(row: dict[str, Any]) -> None:
    method = codec(row["method"])
    side = method.args if row["side"] == "args" else method.rets
    found = side.decode(raw(row["py"]))
    assert [to_json(type_, value) for type_, value in zip(side.types, found, strict=True)] == row["json"]
    assert side.decode(raw(row["js"])) == found
    assert side.decode(side.encode(*found)) == found
    assert tuple(from_json(type_, form) for type_, form in zip(side.types, row["json"], strict=True)) == found


@pytest.mark.parametrize("row", vectors("candid_coercions"), ids=lambda row: row["desc"])
def test_ic_11_messages_of_other_types_are_coerced_or_refused(row: dict[str, Any]) -> None:
    types = interface(row["did"]).types
    expected = types[row["type"]] if row["type"] in types else parse_types(f"({row['type']})")[0]
    if row.get("refused"):
        with pytest.raises(CandidError):
            Codec((expected,)).decode(raw(row["bytes"]))
        return
    (found,) = Codec((expected,)).decode(raw(row["bytes"]))
    assert to_json(expected, found) == row["json"]


def test_ic_11_a_message_has_one_record_class_per_named_record() -> None:
    for service in ("orchestrator", "broadcaster", "publisher", "subscriber", "ledger", "list"):
        for name, type_ in interface(service).types.items():
            make = getattr(type_, "make", None)
            if make is None:
                continue
            fields = tuple(each.name for each in type_.fields)  # type: ignore[union-attr]
            expected = tuple(
                "from" if name == "TransferFromArgs" and f == "source" else f for f in make.args[0]._fields
            )
            assert fields == expected, name


@pytest.mark.parametrize("row", vectors("namespaces"), ids=repr)
def test_ic_24_namespaces_are_accepted_or_refused(row: dict[str, Any]) -> None:
    if row["valid"]:
        assert check_namespace(row["namespace"]) == row["namespace"]
    else:
        with pytest.raises(NamespaceError):
            check_namespace(row["namespace"])


@pytest.mark.parametrize("row", vectors("patterns"), ids=repr)
def test_ic_24_patterns_are_accepted_or_refused(row: dict[str, Any]) -> None:
    if row["valid"]:
        assert check_pattern(row["pattern"]) == row["pattern"]
    else:
        with pytest.raises(NamespaceError):
            check_pattern(row["pattern"])


@pytest.mark.parametrize("row", vectors("wildcards"), ids=repr)
def test_ic_24_patterns_match_namespaces(row: dict[str, Any]) -> None:
    assert matches(row["pattern"], row["namespace"]) == row["matches"]


@pytest.mark.parametrize("row", vectors("skip"), ids=repr)
def test_ic_27_skip_lets_every_mth_event_pass(row: dict[str, Any]) -> None:
    skip = skip_of(array(nat(int(each)) for each in row["skip"]))
    assert skip.passes(int(row["eventId"])) == row["delivered"]


@pytest.mark.parametrize("bad", [[0], [3, 3], [1, 2, 3], []])
def test_ic_27_a_skip_with_its_offset_outside_is_refused(bad: list[int]) -> None:
    with pytest.raises(ConfigError):
        skip_of(array(map(nat, bad)))

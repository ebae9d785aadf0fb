"""ID-11, ID-22: bodies of events, in the spellings that adapters use, and what makes two events the
same.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interchain_events.distributor.core import rows
from interchain_events.distributor.event import (
    BadEventError,
    Notice,
    legacy_notice,
    parse_notification,
    parse_publication,
    parse_row,
)
from interchain_events.distributor.simulation.stories import event_of

ID, EVENT = event_of(7)
NOTICE = Notice(702, 1_705_401_561, EVENT, ID, "0x" + "eb" * 20)
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
)


def test_id11_a_publication_is_read_and_unknown_fields_are_dropped() -> None:
    assert parse_publication({**EVENT.body(), "rpcAddress": "x", "more": [1]}) == (ID, EVENT)


def test_id11_a_notification_and_a_row_of_a_query_are_read() -> None:
    assert parse_notification({**NOTICE.body(), "network": "alastria"}) == ("alastria", NOTICE)
    assert parse_notification(NOTICE.body()) == (None, NOTICE)
    assert parse_row(NOTICE.row()) == NOTICE


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("entityIDHash", "entityIdHash"),
        ("publisherAddress", "origin"),
        ("ethereumAddress", "authorAddress"),
    ],
)
def test_id11_other_spellings_are_read(field: str, other: str) -> None:
    body = NOTICE.body()
    body[other] = body.pop(field)
    assert parse_notification(body) == (None, NOTICE)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("eventType", ""),
        ("eventType", "x" * 256),
        ("eventType", "\ud800"),
        ("eventType", None),
        ("relevantMetadata", "sbx"),
        ("relevantMetadata", [" "]),
        ("relevantMetadata", ["x"] * 33),
        ("relevantMetadata", ["x" * 257]),
        ("entityId", "0x12"),
        ("entityId", "0x" + "g" * 64),
        ("previousEntityHash", 5),
        ("iss", "0x"),
    ],
)
def test_id11_a_field_that_is_not_as_it_should_be_is_named(field: str, value: object) -> None:
    with pytest.raises(BadEventError, match=f"^{field}: "):
        parse_publication({**EVENT.body(), field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", -1),
        ("id", 2**64),
        ("id", True),
        ("timestamp", "1"),
        ("network", "A"),
    ],
)
def test_id11_a_notification_that_is_not_as_it_should_be_is_refused(
    field: str, value: object
) -> None:
    with pytest.raises(BadEventError, match=f"^{field}: "):
        parse_notification({**NOTICE.body(), field: value})


def test_id22_iss_and_the_case_of_hashes_do_not_count_everything_else_does() -> None:
    same = EVENT._replace(iss=None, entity=EVENT.entity.upper().replace("X", "x"))
    assert same.digest() == EVENT.digest()
    for other in (
        EVENT._replace(event_type="x"),
        EVENT._replace(metadata=()),
        EVENT._replace(previous="0x" + "0" * 64),
        EVENT._replace(data_location=EVENT.data_location + "#"),
    ):
        assert other.digest() != EVENT.digest()


def test_id22_the_digest_is_blake2_256_of_the_canonical_json() -> None:
    import hashlib  # noqa: PLC0415  # an independent computation

    text = (
        f'{{"dataLocation":"{EVENT.data_location}","entityId":"{EVENT.entity}","eventType":"ProductOffering",'
        f'"previousEntityHash":"{EVENT.previous.lower()}","relevantMetadata":["sbx"]}}'
    )
    assert EVENT.digest() == hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


def test_id1_blank_metadata_is_read_from_others_and_not_taken_from_clients() -> None:
    body = {**NOTICE.body(), "relevantMetadata": ["sbx", ""]}
    assert parse_notification(body)[1].event.metadata == ("sbx", "")
    with pytest.raises(BadEventError, match=r"^relevantMetadata: "):
        parse_publication({**EVENT.body(), "relevantMetadata": ["sbx", ""]})


def test_id1_what_public_adapters_append_to_the_metadata_is_stripped() -> None:
    for appended in ("2020", ""):
        told = NOTICE._replace(event=EVENT._replace(metadata=(*EVENT.metadata, appended)))
        assert legacy_notice(told, "2020") == NOTICE
    assert legacy_notice(NOTICE, "2020") == NOTICE


@given(kind=TEXTS, metadata=st.lists(TEXTS, max_size=4), number=st.integers(0, 2**64 - 1))
def test_what_is_stored_is_read_back(kind: str, metadata: list[str], number: int) -> None:
    notice = NOTICE._replace(
        number=number, event=EVENT._replace(event_type=kind, metadata=tuple(metadata))
    )
    assert rows.notice_of(rows.notice_text(notice)) == notice


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
NAMES = st.sampled_from([*EVENT.body(), "id", "timestamp"])
BODIES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


@given(body=BODIES)
def test_any_json_is_an_event_or_refused(body: Any) -> None:
    json.dumps(body)
    for parse in (parse_publication, parse_notification, parse_row):
        with pytest.raises(BadEventError):
            parse(body)

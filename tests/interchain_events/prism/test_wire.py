"""PR-10, PR-20: decoding.

The protobuf library is the reference for what every decoder reads alike.
"""

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import example, given
from hypothesis import strategies as st

from interchain_events.prism.core import messages
from interchain_events.prism.core.errors import Undecodable
from interchain_events.prism.core.process import read_object
from interchain_events.prism.core.wire import Step, bytes_field, reader, varint, varint_field


def _library() -> Any:
    """The same schema as classes of the protobuf library."""
    kinds = {
        "text": 9,
        "bytes": 12,
        "number": 4,
    }  # a number as uint64: the library cuts enums to 32 bits
    file = descriptor_pb2.FileDescriptorProto(name="p.proto", package="p", syntax="proto3")
    for message, fields in messages._SCHEMA.items():
        made = file.message_type.add(name=message.__name__)
        names = [field.name for field in fields.values()]
        for number, field in fields.items():
            inner = isinstance(field.kind, type)
            each = made.field.add(
                name=f"f{number}", number=number, label=3 if field.repeated else 1
            )
            each.type = 11 if inner else kinds[str(field.kind)]
            if isinstance(field.kind, type):
                each.type_name = f".p.{field.kind.__name__}"
            if names.count(field.name) > 1:
                if not made.oneof_decl:
                    made.oneof_decl.add(name="one")
                each.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.AtalaObject"))


LIBRARY = _library()


def _message(kind: type) -> st.SearchStrategy[Any]:
    fields = messages._SCHEMA[kind]
    by_name: dict[str, list[Any]] = {}
    for field in fields.values():
        by_name.setdefault(field.name, []).append(field)

    def value(field: Any) -> st.SearchStrategy[Any]:
        plain = {
            "text": st.text(max_size=8),
            "bytes": st.binary(max_size=8),
            "number": st.integers(0, 2**64 - 1),
        }
        return plain[field.kind] if isinstance(field.kind, str) else _message(field.kind)

    def attribute(listed: list[Any]) -> st.SearchStrategy[Any]:
        field = listed[0]
        if field.repeated:
            return st.lists(value(field), max_size=3).map(tuple)
        if isinstance(field.kind, str) and not field.is_member:
            return value(field)
        return st.none() | st.one_of([value(each) for each in listed])

    raw = {"raw": st.just(b"")} if "raw" in kind._fields else {}  # type: ignore[attr-defined]  # a NamedTuple
    return st.builds(kind, **raw, **{name: attribute(listed) for name, listed in by_name.items()})


def _without_raw(found: Any) -> Any:
    if isinstance(found, tuple) and hasattr(found, "_fields"):
        return type(found)(
            **{
                name: b"" if name == "raw" else _without_raw(getattr(found, name))
                for name in found._fields
            }
        )
    return tuple(map(_without_raw, found)) if isinstance(found, tuple) else found


OBJECTS = _message(messages.AtalaObject)


@given(OBJECTS)
def test_pr_20_what_is_encoded_is_what_the_library_reads_and_writes(
    made: messages.AtalaObject,
) -> None:
    raw = messages.encode(made)
    library = LIBRARY.FromString(raw)
    assert library.SerializeToString(deterministic=True) == raw
    assert _without_raw(messages.decode(messages.AtalaObject, raw)) == made


@given(st.binary(max_size=60), OBJECTS, st.data())
def test_pr_20_any_bytes_decode_or_are_refused(
    noise: bytes, made: messages.AtalaObject, data: st.DataObject
) -> None:
    raw = bytearray(messages.encode(made) or noise)
    if raw:
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    for each in (bytes(raw), noise):
        try:
            messages.decode(messages.AtalaObject, each)
        except Undecodable:
            continue
        LIBRARY.FromString(each)  # what decodes here, every decoder takes


@given(st.integers(0, 2**64 - 1))
@example(2**64 - 1)
def test_pr_20_an_enum_is_its_whole_varint(number: int) -> None:
    assert messages.decode(messages.PublicKey, varint_field(2, number)).usage == number


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"\x23\x24", "wire type 3"),
        (b"\x24", "wire type 4"),
        (b"\x26", "wire type 6"),
        (b"\x02\x00", "a field has number 0"),
        (varint((1 << 29) << 3 | 2) + b"\x00", "a field has number 536870912"),
        (varint((1 << 29) << 3) + b"\x00", "a field has number 536870912"),
        (b"\x22\x05ab", "beyond its message"),
        (b"\x09ab", "beyond its message"),
        (b"\x08\x80", "beyond its message"),
        (b"\x08" + b"\xff" * 11, "more than ten bytes"),
        (b"\x08" + b"\xff" * 9 + b"\x7f", "more than 64 bits"),
        (bytes_field(4, bytes_field(2, bytes_field(1, b"\xff"))), "UTF-8"),
    ],
)
def test_pr_20_what_does_not_decode(raw: bytes, words: str) -> None:
    with pytest.raises(Undecodable, match=words):
        messages.decode(messages.AtalaObject, raw)


def test_pr_20_a_known_field_of_another_wire_type_is_skipped() -> None:
    raw = varint_field(1, 7) + bytes_field(2, b"s") + varint_field(3, 1)
    assert messages.decode(messages.SignedAtalaOperation, raw) == messages.SignedAtalaOperation(
        raw, "", b"s"
    )


def test_pr_20_the_last_of_a_field_and_of_a_oneof_counts_whole() -> None:
    first, last = bytes_field(1, b"\x01" * 32), bytes_field(2, b"a" * 64)
    twice = messages.decode(messages.AtalaOperation, bytes_field(6, first) + bytes_field(6, last))
    assert twice.operation == messages.DeactivateDID(b"", "a" * 64)
    other = messages.decode(messages.AtalaOperation, bytes_field(6, last) + bytes_field(1, b""))
    assert other.operation == messages.CreateDID()
    skipped = messages.decode(
        messages.AtalaOperation,
        bytes_field(6, last) + bytes_field(10, b"") + bytes_field(11, b"\xff"),
    )
    assert skipped.operation == messages.DeactivateDID(b"", "a" * 64)


def test_pr_20_an_object_without_operations_is_ignored() -> None:
    assert read_object(b"") is None
    assert read_object(bytes_field(4, b"")) is None
    assert read_object(bytes_field(4, bytes_field(1, b""))) is None
    assert read_object(b"\xff") is None
    assert len(read_object(bytes_field(4, bytes_field(2, b""))) or ()) == 1


@pytest.mark.parametrize(
    ("raw", "is_fine"),
    [
        (bytes_field(1, b"k") + bytes_field(2, b"s") + bytes_field(3, b"\x98\x01\x00"), True),
        (bytes_field(3, b""), True),
        (b"", True),
        (bytes_field(2, b"s") + bytes_field(1, b"k"), False),
        (bytes_field(1, b"k") + bytes_field(1, b"k"), False),
        (bytes_field(1, b""), False),
        (bytes_field(1, b"k") + bytes_field(9, b""), False),
        (b"\x0a\x81\x00k", False),
        (b"\x8a\x00\x01k", False),
        (varint_field(1, 1), False),
    ],
)
def test_pr_21_check_1_the_signed_operation_is_canonical(raw: bytes, is_fine: bool) -> None:
    assert messages.is_canonical(messages.decode(messages.SignedAtalaOperation, raw)) is is_fine


STEPS: dict[int, Step] = {
    1 << 3: (1, False, None),
    2 << 3 | 2: (2, True, bytes.decode),
    16 << 3 | 2: (3, False, None),
    16 << 3: (4, False, None),
    300 << 3: (4, False, None),
}
EMPTY = (b"", 0, (), b"", 0)


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        (b"", (0, (), b"", 0)),
        (b"\x08\x96\x01", (150, (), b"", 0)),
        (b"\x08\x05\x08\x7f", (127, (), b"", 0)),
        (b"\x12\x01a\x12\x00\x12\x01b", (0, ("a", "", "b"), b"", 0)),
        (b"\x82\x01\x02xy\x12\x01a", (0, ("a",), b"xy", 0)),
        (b"\x82\x01\x80\x01" + b"x" * 128, (0, (), b"x" * 128, 0)),
        (b"\xe0\x12\x80\x01\x08\x01", (1, (), b"", 128)),
        (b"\x80\x01\x07\x08\x01", (1, (), b"", 7)),
        # Skipped: a number, eight bytes, bytes, four bytes, and a known number of another type.
        (b"\x18\xff\x01\x21abcdefgh\x2a\x01\x08\x35abcd\x10\x07\x08\x03", (3, (), b"", 0)),
    ],
)
def test_a_reader_puts_each_field_in_its_place(raw: bytes, values: tuple[object, ...]) -> None:
    """The readers of the schema are made when the module is imported. These are made here."""
    moved: dict[int, Step] = {}
    for tag, (place, is_repeated, convert) in STEPS.items():
        moved[tag] = (place - 1, is_repeated, convert)
    plain = reader(moved, EMPTY[1:], tuple, is_hashed=False)
    hashed = reader(STEPS, EMPTY, tuple, is_hashed=True)
    for _ in range(2):
        assert plain(raw) == values
        assert hashed(raw) == (raw, *values)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"\x08", "varint ends beyond"),
        (b"\x08\x80", "varint ends beyond"),
        (b"\x80", "varint ends beyond"),
        (b"\x12", "varint ends beyond"),
        (b"\x12\x02a", "field 2 ends beyond"),
        (b"\x82\x01\x02a", "field 16 ends beyond"),
        (b"\x31abcdefg", "field 6 ends beyond"),
        (b"\x1a\x02a", "field 3 ends beyond"),
        (b"\x35abc", "field 6 ends beyond"),
        (b"\x0b", "wire type 3"),
        (b"\x07", "number 0"),
    ],
)
def test_a_reader_refuses_a_field_beyond_the_end(raw: bytes, words: str) -> None:
    with pytest.raises(Undecodable, match=words):
        reader(STEPS, EMPTY, tuple, is_hashed=True)(raw)


def test_fields_have_their_numbers_and_types() -> None:
    raw = b"\x08\x96\x01\x12\x01a\x15abcd\x12\x00\x19abcdefgh\x1a\x01b\x20\x05"
    read = reader({8: (0, False, None), 18: (1, True, bytes)}, (0, ()), tuple, is_hashed=False)
    assert read(raw) == (150, (b"a", b""))
    assert messages.encode(messages.RevokeCredentials(b"", "", (b"", b"a"))) == b"\x1a\x00\x1a\x01a"


def test_an_empty_member_of_a_oneof_is_encoded() -> None:
    hashed = b"\x0a\x01h"
    data = messages.StatusListEntry(3, "", "d")
    for value, raw in (
        (None, b""),
        (b"", b"\xa2\x06\x00"),
        ("", b"\xaa\x06\x00"),
        (messages.StatusListEntry(), b"\xb2\x06\x00"),
        (data, b"\xb2\x06\x05\x08\x03\x1a\x01d"),
    ):
        entry = messages.CreateStorageEntry(b"h", b"", value)
        assert messages.encode(entry) == hashed + raw
        assert messages.decode(messages.CreateStorageEntry, hashed + raw) == entry
